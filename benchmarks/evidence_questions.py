"""What planning by rules costs and brings: the labelled questions over the embedded run.

`uv run python -m benchmarks.evidence_questions` prints the tables. The run is made anew in a folder of its
own. Times are wall-clock: of the first plan of each question, and of everything that is gathered for it, with
its calls, one question after the other, after one round that is not counted.
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from agents.planning.gathering import gather, usable_tools
from agents.planning.rule_planner import RulePlanner
from agents.tool_hosts.in_process import InProcessTools
from benchmarks.evidence_tools import content_of, run_program
from schemas.evidence_plan import GatheredEvidence
from schemas.settings.planner import OWN, PlannerSettings
from services.ports import EvidenceQuestion
from services.store import open_store
from tests.agents.planning.labelled import Called, LabelledQuestion, labelled, made
from tests.agents.planning.question_sets import (
    FIRST_READINGS,
    SETS,
    SetQuestion,
    is_as_expected,
    question_set,
)
from tools.docs_pages import table
from worker.review.asking import describe_known
from worker.review.evidence import store_tools
from worker.review.run_views import RunViews

ROUNDS = 5
SHARES = (50.0, 95.0, 99.0)
FILES = ("tuned", "held_out", "read_once", "traders", "unseen")
# Of the files: whether the rules had not seen it, and its first reading.
EARLIER_READINGS = (
    ("tuned", False, "", "", ""),
    ("held out", True, "79 of 84 (94.0%)", "1", "3 of 60 (5.0%)"),
    ("read once", True, "40 of 40 (100.0%)", "1", "0 of 30 (0.0%)"),
    ("traders", True, "21 of 56 (37.5%)", "18", "12 of 53 (22.6%)"),
    ("unseen", True, "28 of 38 (73.7%)", "3", "1 of 36 (2.8%)"),
)
BINS = ((0.0, 0.7), (0.7, 0.9), (0.9, 1.01))


@dataclass(frozen=True)
class QuestionCost:
    """A labelled question, what was gathered for it, and milliseconds of each round."""

    question: LabelledQuestion
    gathered: GatheredEvidence
    planning_ms: tuple[float, ...]
    gathering_ms: tuple[float, ...]

    @property
    def is_clear(self) -> bool:
        """Whether something is asked for."""
        return self.question.kind != "ambiguous"

    @property
    def is_right(self) -> bool:
        """Whether the calls are those of the label, and no call where none is."""
        if self.question.kind == "unseen":
            return all(_is_made(call, self) for call in self.question.calls)
        return sorted(map(repr, made(self.gathered))) == sorted(map(repr, self.question.calls))


def _is_made(call: Called, cost: QuestionCost) -> bool:
    """Whether an expected call was made; of a set with all that the question determines."""
    found = made(cost.gathered)
    if cost.question.kind != "unseen":
        return call in found
    return any(is_as_expected((call[0], dict(call[1])), (method, dict(given))) for method, given in found)


def ask_questions() -> list[QuestionCost]:
    """Every question, over a run that is made for it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "thinktwice.db"
        run_program("backtest", "--db", f"sqlite:///{path}")
        return asyncio.run(_ask(path))


async def _ask(path: Path) -> list[QuestionCost]:
    async with await open_store(f"sqlite:///{path}", create=False, read_only=True) as store:
        views = RunViews(store)
        host = store_tools(views)
        context, ids = describe_known(await views.view("latest", None)), await _ids(host)
        questions = [
            question for name in FILES for question in labelled(name, ids) if question.kind != "change"
        ]
        questions += [
            _label(question)
            for number in SETS
            for question in question_set(number)
            if question.status != "plan"
        ]
        return [await _cost(host, question, {**context, **question.recent}) for question in questions]


async def _ids(host: InProcessTools) -> dict[str, str]:
    """Ids of the run that questions name."""
    fill = content_of(await host.call("episodes", {"limit": 1}))["episodes"][0]["fill_id"]
    report = content_of(await host.call("reports", {"limit": 1}))["reports"][0]["report_id"]
    return {"fill": fill, "prefix": fill[:8], "report": report}


async def _cost(host: InProcessTools, labels: LabelledQuestion, context: Mapping[str, Any]) -> QuestionCost:
    hosts, planner, question = {OWN: host}, RulePlanner(), EvidenceQuestion(labels.text, context)
    tools = await usable_tools(hosts)
    planning, gathering = list[float](), list[float]()
    for _ in range(ROUNDS + 1):
        started = time.perf_counter()
        await planner.plan(question, tools)
        planning.append((time.perf_counter() - started) * 1e3)
        started = time.perf_counter()
        gathered = await gather(question, planner, hosts, PlannerSettings(), attended=True)
        gathering.append((time.perf_counter() - started) * 1e3)
    return QuestionCost(labels, gathered, tuple(planning[1:]), tuple(gathering[1:]))


def _label(one: SetQuestion) -> LabelledQuestion:
    """A question of a set with the calls that it needs."""
    kind = "ambiguous" if one.status == "clarify" else "unseen"
    calls = tuple((method, tuple(sorted(arguments.items()))) for method, arguments in one.calls)
    return LabelledQuestion(kind, one.text, {}, calls, also=one.also)


def first_reading_table() -> str:
    """What each file of questions came to when it was first read."""
    rows = [
        (name, "yes" if unseen else "no", calls, wrong, back)
        for name, unseen, calls, wrong, back in EARLIER_READINGS
    ]
    for number, reading in FIRST_READINGS.items():
        made, back = _share(reading.made, reading.calls - reading.rules), _share(reading.back, reading.clear)
        rows.append((f"set {number}", "yes", made, str(reading.wrong), back))
    return table(
        ("questions", "unseen", "expected calls", "with a wrong tool", "clear ones asked back"), rows
    )


def question_tables(costs: Sequence[QuestionCost]) -> str:
    """Times, what the planner did, and how often it was right by its confidence."""
    return f"{_times(costs)}\n\n{_shares(costs)}\n\n{_bins(costs)}"


def _times(costs: Sequence[QuestionCost]) -> str:
    spent = {
        "the first plan": [ms for cost in costs for ms in cost.planning_ms],
        "plans and calls": [ms for cost in costs for ms in cost.gathering_ms],
    }
    rows = [
        (name, *(f"{float(np.percentile(found, share)):.1f}" for share in SHARES), f"{max(found):.1f}")
        for name, found in spent.items()
    ]
    return table(("of a question", "p50 ms", "p95 ms", "p99 ms", "slowest ms"), rows)


def _shares(costs: Sequence[QuestionCost]) -> str:
    clear = [cost for cost in costs if cost.is_clear]
    refined = [cost for cost in costs if cost.gathered.refined]
    expected = [(cost, call) for cost in costs for call in cost.question.calls]
    answered = [cost for cost in costs if cost.gathered.status == "gathered"]
    foreign = [
        cost
        for cost in costs
        if {name for name, _ in made(cost.gathered)}
        - {name for name, _ in cost.question.calls}
        - cost.question.also
    ]
    plans = [plan for cost in costs for plan in cost.gathered.plans]
    calls = sum(len(cost.gathered.calls) for cost in answered)
    rows = [
        ("plans that can be read", _share(sum(plan.failure is None for plan in plans), len(plans)), "all"),
        (
            "expected calls made",
            _share(sum(_is_made(call, cost) for cost, call in expected), len(expected)),
            "95 %",
        ),
        ("questions with a wrong tool", _share(len(foreign), len(costs)), "none"),
        ("clear ones asked back", _share(sum(not cost.gathered.calls for cost in clear), len(clear)), "5 %"),
        ("refined", _share(len(refined), len(costs)), "20 %"),
        ("of these complete", _share(sum(cost.gathered.complete for cost in refined), len(refined)), "90 %"),
        ("calls a question", f"{calls / len(answered):.2f}", ""),
    ]
    return table((f"{len(costs)} labelled questions", "measured", "bound"), rows)


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({part / max(whole, 1):.1%})"


def _bins(costs: Sequence[QuestionCost]) -> str:
    rows = []
    for low, high in BINS:
        there = [cost for cost in costs if low <= cost.gathered.confidence < high]
        mean = sum(cost.gathered.confidence for cost in there) / max(len(there), 1)
        right = _share(sum(cost.is_right for cost in there), len(there))
        rows.append((f"{low:.1f} to {min(high, 1.0):.1f}", str(len(there)), f"{mean:.2f}", right))
    return table(("confidence", "questions", "mean", "as labelled"), rows)


if __name__ == "__main__":
    sys.stdout.write(question_tables(ask_questions()) + "\n")
