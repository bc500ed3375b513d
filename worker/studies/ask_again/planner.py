"""What the planner of evidence is asked about a stored run, and what each of its plans comes to.

The questions are the examples of its prompt, in the names of the run, or those of a file, one a line. Each is
gathered for as `ask` does it: our own tools answer from the rows of the run, and only the planner is a model.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agents.evidence_planner import NOT_ANSWERED, ModelPlanner
from agents.planning.gathering import demand_question, gather
from agents.planning.plan_reply import read_plan
from agents.planning.prompt_examples import prompt_examples
from prompts import PromptTemplate
from schemas.canonical import content_hash
from schemas.errors import ConfigError, DataError
from schemas.evidence_plan import GatheredEvidence
from schemas.settings import Settings
from schemas.settings.planner import OWN
from services.model_calls.language_model import LanguageModel
from services.ports import EvidenceQuestion, ToolHost
from services.text.given_files import read_text
from worker.studies.ask_again.asking import Answer, RunQuestion

PLAN_TOKENS = 1_500
ASKS_BACK, UNREADABLE, NO_REPLY = "asks back", "unreadable", "no reply"
EXAMPLE_FILL = "7c1f09aa"
Calls = tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class PlannerQuestion(RunQuestion):
    """One question.

    Attributes:
        text: of it.
        context: what is known before looking.
        host: its tools answer from the run.
        expected: the calls that answer it, where that is known.
    """

    text: str
    context: Mapping[str, Any]
    host: ToolHost
    expected: Calls | None = None

    async def ask(self, model: LanguageModel, settings: Settings, template: PromptTemplate) -> Answer:
        """What is gathered with the plans of a model."""
        planner = ModelPlanner(model, settings.planner, max_tokens=PLAN_TOKENS, template=template)
        asked, hosts = EvidenceQuestion(self.text, self.context), {OWN: self.host}
        found = await gather(asked, planner, hosts, settings.planner, attended=True, deadline_s=None)
        return measure_plan(found, self.expected)


def measure_plan(found: GatheredEvidence, expected: Calls | None) -> Answer:
    """What was gathered: the tools by name, and figures; `complete` only where there was a second plan."""
    failures = [plan.failure for plan in found.plans if plan.failure is not None]
    calls = _order_calls((call.method, call.params) for call in found.calls)
    if any(failure.startswith(NOT_ANSWERED) for failure in failures):
        return Answer(NO_REPLY, replied=False)
    decision = " + ".join(sorted({call.method for call in found.calls})) or ASKS_BACK
    facts = {
        "plans": float(len(found.plans)),
        "readable": 1.0 - len(failures) / len(found.plans),
        "refined": float(found.refined),
        "confidence": found.confidence,
    }
    if found.calls:
        facts["calls_first_plan"] = float(sum(call.iteration == 1 for call in found.calls))
        facts["calls"] = float(len(found.calls))
    if found.refined:
        facts["refined_complete"] = float(found.complete)
    if expected is not None:
        facts["as_expected"] = float(calls == expected)
    unread = found.plans[0].failure is not None
    return Answer(UNREADABLE if unread else decision, plan=content_hash(calls), facts=facts)


def _order_calls(calls: Iterable[tuple[str, Mapping[str, Any]]]) -> Calls:
    """Calls as texts, whatever the order in which they are made."""
    return tuple(sorted((method, json.dumps(dict(params), sort_keys=True)) for method, params in calls))


def example_questions(
    context: Mapping[str, Any], known_at: int, host: ToolHost, fill_id: str | None
) -> list[PlannerQuestion]:
    """The examples of the prompt with their calls, in the names of a run.

    Args:
        context: what is known of the run: its symbols and playbooks above all.
        known_at: ns.
        host: of the run's tools.
        fill_id: of a fill of the run; without one the example of a fill is left out.
    """
    found = list[PlannerQuestion]()
    for example in prompt_examples():
        if EXAMPLE_FILL in example.question and fill_id is None:
            continue
        names = _map_names(example.context, context, fill_id)
        own = {
            key: names.get(value, value) for key, value in example.context.items() if key.startswith("recent")
        }
        text = example.question
        for name, other in names.items():
            text = text.replace(name, other)
        plan = read_plan(example.reply)
        calls = [(call.method, {k: names.get(v, v) for k, v in call.params.items()}) for call in plan.tools]
        asked = _question(len(found), text, {**context, **own}, known_at, host)
        found.append(replace(asked, expected=_order_calls(calls)))
    return found


def _map_names(told: Mapping[str, Any], context: Mapping[str, Any], fill_id: str | None) -> dict[str, str]:
    """Names of an example -> those of the run, where the run has not the same."""
    names = {} if fill_id is None else {EXAMPLE_FILL: fill_id}
    for kind in ("symbols", "playbooks"):
        there = list(context[kind])
        other = [name for name in there if name not in told[kind]] or there
        missing = [name for name in told[kind] if name not in there]
        names |= {name: other[number % len(other)] for number, name in enumerate(missing) if other}
    return names


def file_questions(
    path: Path, context: Mapping[str, Any], known_at: int, host: ToolHost
) -> list[PlannerQuestion]:
    """The questions of a file, one a line.

    Raises:
        ConfigError: it cannot be read, has no question, or one that is too long.
    """
    try:
        lines = [line.strip() for line in read_text(path, ConfigError).splitlines() if line.strip()]
        for line in lines:
            demand_question(line)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--questions {str(path)!r} cannot be read: {error}") from error
    except DataError as error:
        raise ConfigError(f"--questions {str(path)!r}: {error}") from error
    if not lines:
        raise ConfigError(f"--questions {str(path)!r} has no question: write one on each line")
    return [_question(place, line, context, known_at, host) for place, line in enumerate(lines)]


def _question(
    seq: int, text: str, context: Mapping[str, Any], known_at: int, host: ToolHost
) -> PlannerQuestion:
    about = {"seq": seq, "question": text}
    return PlannerQuestion(about=about, known_at=known_at, text=text, context=context, host=host)
