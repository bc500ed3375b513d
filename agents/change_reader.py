"""A model reads a person's words into typed actions, which are then checked as if they had been typed.

Nothing that it answers is carried out or believed: an action without its fields or a reply that is not closed
counts for nothing, and the person is shown the typed commands.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from agents.change_reply import PROMPT, ActionReply, read_change
from prompts import load_prompt
from schemas.errors import ConfigError
from schemas.plan import Proposed
from schemas.playbook import PlaybookDefinition
from schemas.settings import JudgeSettings
from services.model_calls.asking import NoReply, ask
from services.model_calls.language_model import LanguageModel
from services.model_calls.quoting import visible
from services.model_calls.reply_text import SEEN, MalformedReply
from services.model_calls.wording import PLAIN, Wording
from services.plans.typed_changes import propose_change

DEADLINE_MS = 60_000.0
LONGEST_TEXT = 8_000
LONGEST_REASON = 300


class UnreadableText(ConfigError):
    """A text that no model reads into actions."""


@dataclass(frozen=True)
class ChangeReading:
    """What a text asks for, with the model that read it and its reasoning."""

    proposed: tuple[Proposed, ...]
    reasoning: str
    model: str


def check_characters(text: str) -> str:
    """The text with one kind of line end and without blanks around it.

    Raises:
        ConfigError: it is empty, too long, or holds characters that cannot be seen.
    """
    if len(text) > LONGEST_TEXT:
        raise ConfigError(f"the text has {len(text):,} characters, at most {LONGEST_TEXT:,}: shorten it")
    plain = text.replace("\r\n", "\n").replace("\t", " ").strip()
    if not plain:
        raise ConfigError("the text is empty: say what to change")
    if visible(plain, lines=True) != plain:
        unseen = next(c for c in plain if c != "\n" and visible(c) != c)
        raise ConfigError(f"the text holds '{visible(unseen)}', which cannot be seen: write it without")
    return plain


async def read_with_model(
    text: str,
    definitions: Mapping[str, PlaybookDefinition],
    judge: JudgeSettings,
    model: LanguageModel,
    *,
    max_tokens: int,
    deadline_ms: float = DEADLINE_MS,
    wording: Wording = PLAIN,
) -> ChangeReading:
    """The actions that a model reads in a text; each has the text as its reason.

    Raises:
        UnreadableText: it did not answer, or no action that can be used; the message has the cause.
        ConfigError: the text is empty, too long or holds characters that cannot be seen.
    """
    prompt, plain = load_prompt(PROMPT), check_characters(text)
    request = prompt.render(
        playbooks=wording.json([_material(definitions[name]) for name in sorted(definitions)]),
        text=wording.json(plain),
    )
    reply = await ask(
        model, system=prompt.system, prompt=request, max_tokens=max_tokens, deadline_ms=deadline_ms
    )
    if isinstance(reply, NoReply):
        raise UnreadableText(f"the model did not answer ({reply.kind}): {visible(reply.detail)[:SEEN]}")
    try:
        read = read_change(reply.text)
        reason = " ".join(plain.split())[:LONGEST_REASON]
        proposed = [_propose(action, definitions, judge, reason) for action in read.actions]
    except (MalformedReply, ConfigError) as error:
        raise UnreadableText(f"the model's reply cannot be used: {visible(str(error))[:SEEN]}") from error
    if not proposed:
        raise UnreadableText("the model found no action in it")
    last = replace(proposed[-1], checkpoint=False)  # there is nothing to ask again about
    return ChangeReading((*proposed[:-1], last), visible(read.reasoning), reply.model)


def _propose(
    action: ActionReply, definitions: Mapping[str, PlaybookDefinition], judge: JudgeSettings, reason: str
) -> Proposed:
    fields = action.model_dump(exclude={"kind", "then_ask"})
    found = propose_change(action.kind, fields, definitions, judge, reason)
    return replace(found, checkpoint=action.then_ask)


def _material(definition: PlaybookDefinition) -> dict[str, Any]:
    """What a model needs to know of a playbook to name its parts."""
    return {
        "playbook_id": definition.id,
        "title": definition.title,
        "risk_fraction": definition.risk_fraction,
        "parameters": {
            name: {"role": parameter.role, "value": parameter.value, "grid": list(parameter.grid)}
            for name, parameter in definition.parameters.items()
        },
        "regimes": {
            side: {
                "trend": list(rules.trend),
                "volatility": list(rules.volatility),
                "banned": list(rules.banned),
            }
            for side, rules in definition.eligibility.items()
        },
    }
