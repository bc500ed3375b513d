"""A model reads a person's words into the forms of actions; the forms are then read as if they were typed.

Nothing that it says is carried out or believed: a line of no form, an unknown name or a reply that is not
closed counts for nothing, and the person is shown the forms.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agents.change_reply import PROMPT, read_change
from prompts import load_prompt
from schemas.errors import ConfigError
from schemas.playbook import PlaybookDefinition
from schemas.settings import JudgeSettings
from services.model_calls.asking import NoReply, ask
from services.model_calls.language_model import LanguageModel
from services.model_calls.quoting import visible
from services.model_calls.reply_text import SEEN, MalformedReply
from services.model_calls.wording import PLAIN, Wording
from services.plans.drafting import Proposed
from services.plans.text_forms import UnreadableText, check_characters, read_text

DEADLINE_MS = 60_000.0


@dataclass(frozen=True)
class ChangeReading:
    """What a text asks for; with the model that read it and its reasoning, where one did."""

    proposed: tuple[Proposed, ...]
    reasoning: str | None = None
    model: str | None = None


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
        UnreadableText: it did not answer, or nothing in the forms; the message says which.
        ConfigError: the text is empty, too long or holds characters that cannot be seen.
    """
    prompt, said = load_prompt(PROMPT), check_characters(text)
    request = prompt.render(
        playbooks=wording.json([_material(definitions[name]) for name in sorted(definitions)]),
        text=wording.json(said),
    )
    reply = await ask(
        model, system=prompt.system, prompt=request, max_tokens=max_tokens, deadline_ms=deadline_ms
    )
    if isinstance(reply, NoReply):
        raise UnreadableText(f"the model did not answer ({reply.kind}): {visible(reply.detail)[:SEEN]}")
    try:
        read = read_change(reply.text)
    except MalformedReply as error:
        raise UnreadableText(f"the model's reply cannot be used: {visible(str(error))[:SEEN]}") from error
    if not read.actions:
        raise UnreadableText("the model found nothing in it that has a form")
    try:
        proposed = read_text("\n".join(read.actions), definitions, judge, reason=said)
    except UnreadableText as error:
        raise UnreadableText("the model's reply has a line of no form") from error
    except ConfigError as error:
        raise UnreadableText(f"the model's reply cannot be used: {error}") from error
    return ChangeReading(proposed, visible(read.reasoning), reply.model)


def _material(definition: PlaybookDefinition) -> dict[str, Any]:
    """What a model needs to know of a playbook to name its parts."""
    return {
        "playbook": definition.id,
        "title": definition.title,
        "risk_percent": round(100 * definition.risk_fraction, 6),
        "parameters": {
            name: {"value": parameter.value, "grid": list(parameter.grid)}
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
