"""The examples of the planner's prompt, read from its text."""

import json
import re
from dataclasses import dataclass
from typing import Any

from agents.planning.plan_reply import PROMPT
from prompts import load_prompt

EXAMPLE = re.compile(
    r'^Example \d: (?P<title>.+)\nQuestion: (?P<question>".*")\nContext: (?P<context>\{.*\})\n'
    r"(?P<reply>(?:.+\n?)+)",
    re.MULTILINE,
)


@dataclass(frozen=True)
class PromptExample:
    """One example: what is asked, what is known, and the whole reply."""

    title: str
    question: str
    context: dict[str, Any]
    reply: str


def prompt_examples() -> list[PromptExample]:
    """The examples of the present prompt, in its order."""
    return [
        PromptExample(
            found["title"], json.loads(found["question"]), json.loads(found["context"]), found["reply"]
        )
        for found in EXAMPLE.finditer(load_prompt(PROMPT).system)
    ]
