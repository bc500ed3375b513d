"""Keys of tasks: what a task is made of, so that the same work has the same key on any machine."""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import agents
import prompts
import schemas
import services
import trading_core
import worker
from schemas.canonical import content_id
from trading_core.compiled_cache import source_hash


@cache
def program_hash() -> str:
    """Hash of every source, and of every prompt, that an answer could depend on."""
    rooms = (agents, schemas, services, trading_core, worker)
    texts = [path.read_text("utf-8") for path in sorted(prompts.FOLDER.rglob("*.txt"))]
    return content_id([*(source_hash(Path(str(room.__file__)).parent) for room in rooms), *texts])[:16]


def task_key(name: str, work: Callable[..., Any], content: Mapping[str, Any]) -> str:
    """A key that a person can read the name in.

    Args:
        name: what a person calls the task.
        work: what is done with it.
        content: of settings, seed or chunk of a grid, hash of bars, hash of playbooks; no path, no time.
    """
    made_of = {"work": work.__qualname__, "program": program_hash(), **content}
    return f"{name} {content_id(made_of)[:24]}"
