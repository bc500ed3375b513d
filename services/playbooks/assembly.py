"""The playbooks of a run, put together: their definitions, their versions, and what moves those."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from schemas.playbook import PlaybookDefinition
from schemas.settings import Settings
from schemas.state import PART, Stateful
from services.playbooks.lifecycle import PlaybookLifecycle
from services.playbooks.loader import load_playbooks
from services.playbooks.registry import PlaybookRegistry, RegistryReader
from trading_core.tick_guard import TickGuard


@dataclass(frozen=True)
class RunPlaybooks(Stateful):
    """What was defined before the run, its versions so far, who reads them, and the ways between them."""

    STATE: ClassVar = {"registry": PART, "lifecycle": PART}
    REBUILT = frozenset({"definitions", "reader"})

    definitions: Sequence[PlaybookDefinition]
    registry: PlaybookRegistry
    reader: RegistryReader
    lifecycle: PlaybookLifecycle


def assemble_playbooks(
    settings: Settings, definitions: Sequence[PlaybookDefinition] | None, guard: TickGuard, first: int
) -> RunPlaybooks:
    """The playbooks of a run whose first bar has the label `first`, ns; `definitions` as `given_playbooks`.

    Raises:
        ConfigError: a playbook file is wrong.
    """
    books = given_playbooks(settings, definitions)
    registry = PlaybookRegistry(books, guard, first)
    lifecycle = PlaybookLifecycle(registry, settings.judge, guard, settings.gate.block)
    return RunPlaybooks(books, registry, registry.reader(), lifecycle)


def given_playbooks(
    settings: Settings, definitions: Sequence[PlaybookDefinition] | None
) -> Sequence[PlaybookDefinition]:
    """The given playbooks, or those of the configured folder, or the embedded ones.

    Raises:
        ConfigError: a playbook file is wrong.
    """
    if definitions is not None:
        return definitions
    folder = settings.runtime.playbooks
    return load_playbooks(None if folder is None else Path(folder))
