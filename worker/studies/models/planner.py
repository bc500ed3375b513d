"""What the planner of evidence is asked about a stored run, and what each of its plans comes to.

The questions are the examples of its prompt, in the names of the run, or those of a file, one a line. Each is
gathered for as `ask` does it: our own tools answer from the rows of the run, and only the planner is a model.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from agents.evidence_planner import NOT_ANSWERED, ModelPlanner
from agents.planning.gathering import demand_question, gather
from agents.planning.plan_reply import FORM, read_plan
from agents.planning.prompt_examples import prompt_examples
from schemas.canonical import content_hash
from schemas.errors import ConfigError, DataError
from schemas.evidence_plan import EvidenceCall, GatheredEvidence
from schemas.settings.planner import OWN
from services.ports import EvidenceQuestion, ToolHost
from services.text.given_files import read_text
from worker.studies.models.comparison import sign_test
from worker.studies.models.panel import Panel
from worker.studies.models.strategist import Decided

PLAN_TOKENS = 1_500
ASKS_BACK, UNREADABLE, NO_REPLY = "asks back", "unreadable", "no reply"
EXAMPLE_FILL = "7c1f09aa"
Calls = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class AskedAt:
    """The moment of a question, ns."""

    known_at: int
    symbol: str | None = None


@dataclass(frozen=True)
class PlannerQuestion:
    """One question; `seq` is its place among all.

    Attributes:
        context: what is known before looking.
        snapshot: when it is asked.
        expected: the calls that answer it, where that is known.
    """

    seq: int
    text: str
    context: Mapping[str, Any]
    snapshot: AskedAt
    expected: Calls | None = None

    def about(self) -> dict[str, Any]:
        """What is asked."""
        return {"seq": self.seq, "question": self.text}


@dataclass(frozen=True)
class Planned(Decided):
    """What was gathered for one question; `decision` names its tools, or how it came to none.

    Attributes:
        plans, readable: plans, and those of them that could be read.
        confidence: of the first plan.
        refined, complete: whether there was a second plan, and whether nothing is missing at the end.
        calls_before, calls: of the first plan, and of all.
        as_expected: whether the calls are those that answer it; None where that is not known.
    """

    plans: int = 0
    readable: int = 0
    confidence: float = 0.0
    refined: bool = False
    complete: bool = False
    calls_before: int = 0
    calls: int = 0
    as_expected: bool | None = None


class PlannerPanel(Panel[PlannerQuestion, Planned]):
    """One planner with one template, over the tools of a run."""

    form, seat, model_setting = FORM, "planner", "judge_model"
    setting = "the planner: set judge.replan and planner.judge"

    async def _ask(self, question: PlannerQuestion) -> Planned:
        planner = ModelPlanner(
            self._model, self._settings.planner, max_tokens=PLAN_TOKENS, template=self._template
        )
        asked = EvidenceQuestion(question.text, question.context)
        settings, hosts = self._settings.planner, {OWN: self._questions.host}
        found = await gather(asked, planner, hosts, settings, attended=True, deadline_s=None)
        return measure_plan(found, question.expected)


@dataclass(frozen=True)
class PlannerQuestions:
    """Questions about one run, and the tools that answer from it."""

    run_id: str
    asked: tuple[PlannerQuestion, ...]
    host: ToolHost
    left_out: Mapping[str, int]
    without_background: ClassVar[int] = 0
    asks: ClassVar[type[PlannerPanel]] = PlannerPanel

    def figures(self, *said: Sequence[Planned]) -> dict[str, Any]:
        """How each way of asking planned; of two, whether one comes to the expected calls more often."""
        found: dict[str, Any] = {"planned": [_figures(answers) for answers in said]}
        if len(said) > 1:
            pairs = [(a.as_expected, b.as_expected) for a, b in zip(*said[:2], strict=True)]
            gained, lost = pairs.count((False, True)), pairs.count((True, False))
            found["expected"] = {"gained": gained, "lost": lost, "p_value": sign_test(gained, lost)}
        return found


def measure_plan(found: GatheredEvidence, expected: Calls | None) -> Planned:
    """What was gathered, in figures."""
    failures = [plan.failure for plan in found.plans if plan.failure is not None]
    replied = not any(failure.startswith(NOT_ANSWERED) for failure in failures)
    calls = _name_calls(found.calls)
    return Planned(
        decision=_decision(found) if replied else NO_REPLY,
        replied=replied,
        plan=content_hash(calls),
        plans=len(found.plans),
        readable=len(found.plans) - len(failures),
        confidence=found.confidence,
        refined=found.refined,
        complete=found.complete,
        calls_before=sum(call.iteration == 1 for call in found.calls),
        calls=len(found.calls),
        as_expected=None if expected is None or not replied else calls == expected,
    )


def _decision(found: GatheredEvidence) -> str:
    if found.plans[0].failure is not None:
        return UNREADABLE
    return " + ".join(sorted({call.method for call in found.calls})) or ASKS_BACK


def _name_calls(calls: Sequence[EvidenceCall]) -> Calls:
    return _order_calls((call.method, call.params) for call in calls)


def _order_calls(calls: Any) -> Calls:
    """Calls as texts, whatever the order in which they are made."""
    return tuple(sorted((method, json.dumps(dict(params), sort_keys=True)) for method, params in calls))


def _figures(answers: Sequence[Planned]) -> dict[str, Any]:
    """Counts over the questions that a model replied to, and calls a question among those with calls."""
    replied = [answer for answer in answers if answer.replied]
    gathered = [answer for answer in replied if answer.calls]
    refined = [answer for answer in replied if answer.refined]
    labelled = [answer for answer in replied if answer.as_expected is not None]
    return {
        "questions": len(replied),
        "plans": sum(answer.plans for answer in replied),
        "readable": sum(answer.readable for answer in replied),
        "asked_back": sum(answer.decision == ASKS_BACK for answer in replied),
        "refined": len(refined),
        "refined_complete": sum(answer.complete for answer in refined),
        "calls_first_plan": _mean([answer.calls_before for answer in gathered]),
        "calls": _mean([answer.calls for answer in gathered]),
        "confidence": _mean([answer.confidence for answer in replied]),
        "labelled": len(labelled),
        "as_expected": sum(bool(answer.as_expected) for answer in labelled),
    }


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def example_questions(
    context: Mapping[str, Any], known_at: int, fill_id: str | None
) -> list[PlannerQuestion]:
    """The examples of the prompt with their calls, in the names of a run.

    Args:
        context: what is known of the run: its symbols and playbooks above all.
        known_at: ns.
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
        text = _replace_names(example.question, names)
        plan = read_plan(example.reply)
        calls = [(call.method, {k: names.get(v, v) for k, v in call.params.items()}) for call in plan.tools]
        place = len(found)
        found.append(PlannerQuestion(place, text, {**context, **own}, AskedAt(known_at), _order_calls(calls)))
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


def _replace_names(text: str, names: Mapping[str, str]) -> str:
    for name, other in names.items():
        text = text.replace(name, other)
    return text


def file_questions(path: Path, context: Mapping[str, Any], known_at: int) -> list[PlannerQuestion]:
    """The questions of a file, one a line.

    Raises:
        ConfigError: it cannot be read, has no question, or one that is too long.
    """
    try:
        lines = [line.strip() for line in read_text(path, ConfigError).splitlines() if line.strip()]
        for line in lines:
            demand_question(line)
    except OSError as error:
        raise ConfigError(f"--questions {str(path)!r} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"--questions {str(path)!r} is not UTF-8 at byte {error.start}: write one question on each line"
        ) from error
    except DataError as error:
        raise ConfigError(f"--questions {str(path)!r}: {error}") from error
    if not lines:
        raise ConfigError(f"--questions {str(path)!r} has no question: write one on each line")
    return [PlannerQuestion(n, line, context, AskedAt(known_at)) for n, line in enumerate(lines)]
