"""What stops a plausible model's faulty plans, how often its second reader is asked, and good plans stopped.

A fake strategist picks the first plan of a playbook and plants a known fault into two of five; sent back, it
proposes the base as it is. A fake reader objects to the first reason of one plan in three. Both are a
function of the question, so every run is the same. A plan is good where the base was taken unchanged.
`uv run python -m benchmarks.model_faults` prints the table and the figures.
"""

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from schemas.canonical import content_hash
from schemas.reflection import Finding
from schemas.settings import LlmSettings, PolicyLoopSettings, ReflectionSettings, Settings
from schemas.settings.llm import RunLimits
from schemas.vocabulary import CheckName, ReflectionStatus
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.model_calls.language_model import ModelReply
from services.policy_checks.findings import status_of
from tests.agents.strategies.questions import HOLD, Question, change, question
from tools.docs_pages import table
from worker.feeds.sample_data import load_embedded_bars
from worker.models import Models, Overrides
from worker.runs.backtest import run_backtest

SPAN = ("2003-01-01", "2008-12-31")
GOOD = "right"
PLANTED: dict[str, dict[str, Any]] = {
    "conviction": change("conviction", 0.97),
    "horizon": change("horizon_bars", 200),
    "window": change("activation_window_bars", 10),
    "grid": change("parameter", 9.87, name="stop_atr"),
}
FAULTY_OF_FIVE = 2
OBJECTS_ONE_IN = 3


def number_of(text: str, below: int) -> int:
    """A number that looks drawn and is the text's."""
    return int(content_hash(text)[:8], 16) % below


@dataclass
class Speaking:
    """A model that says what a function makes of the question."""

    name: str
    reader: bool = False

    async def complete(self, *, system: str, prompt: str, max_tokens: int, deadline_ms: float) -> ModelReply:
        """The reply, without waiting."""
        reply = read(prompt) if self.reader else plan(question(prompt), prompt)
        return ModelReply(json.dumps(reply), self.name, 1, 1, 0.0)


def plan(request: Question, prompt: str) -> dict[str, Any]:
    """The first base on offer, with a fault where one is planted; its comment says which."""
    offered = [base for base in request.bases if base["origin"] == "playbook"]
    if request.task == "manage" or not offered:
        return HOLD
    base, planted = offered[0], GOOD
    if request.task == "choose" and request.correction is None and number_of(prompt, 5) < FAULTY_OF_FIVE:
        planted = sorted(PLANTED)[number_of(prompt[::-1], len(PLANTED))]
    return {
        "because": [{"kind": reason["kind"], "name": reason["name"]} for reason in base["plan"]["because"]],
        "argues_for": base["plan"]["direction"],
        "answer": "propose",
        "base": base["id"],
        "changes": [] if planted == GOOD else [PLANTED[planted]],
        "comment": planted,
    }


def read(prompt: str) -> dict[str, Any]:
    """An objection to the first reason, or none."""
    objects = number_of(prompt, OBJECTS_ONE_IN) == 0
    return {
        "findings": [],
        "objections": [{"reason": 0, "code": "reason_too_weak"}] if objects else [],
        "comment": None,
        "verdict": "revise" if objects else "pass",
        "deferred_needs": [],
    }


def reflections(rows: list[Any]) -> Iterator[tuple[str, ReflectionStatus, ReflectionStatus]]:
    """Of each reflected plan of the model: what was planted, the word of the rules, and the last word."""
    planted: dict[str, str | None] = {}
    for row in rows:
        payload = json.loads(row.payload)
        if row.kind == "policy_proposal":
            planted[row.symbol] = payload["comment"]
        elif row.kind == "policy_reflection" and payload["amendment"] is None and planted.get(row.symbol):
            found = [Finding.model_validate(item) for item in payload["result"]["findings"]]
            by_rules = status_of(item for item in found if item.check is not CheckName.CONSOLIDATION)
            yield str(planted[row.symbol]), by_rules, ReflectionStatus(payload["result"]["status"])


def study() -> tuple[list[Any], dict[str, Any]]:
    """Rows and document of a run of both fakes over embedded bars."""
    settings = Settings(
        policy_loop=PolicyLoopSettings(strategist="model"),
        reflection=ReflectionSettings(mode="full"),
        llm=LlmSettings(model="anthropic/claude-haiku-5-5", per_run=RunLimits(usd=None)),
    )
    name, sink = settings.llm.fast_model, MemorySink()
    models = Models(fast=Speaking(name, reader=True), strategist=Speaking(name))
    bars = load_embedded_bars(start=SPAN[0], end=SPAN[1])
    done = asyncio.run(run_backtest(settings, bars, JournalWriter(sink), own=Overrides(models=models)))
    return sink.rows, done.document("study", "memory")


def main() -> int:
    """Run the study and print its table and figures."""
    rows, document = study()
    met = list(reflections(rows))
    passes, sent_back = ReflectionStatus.PASS, ReflectionStatus.REVISE
    calls = [json.loads(row.payload)["call"] for row in rows if row.kind == "model_call"]
    prompts = Counter(call["prompt"] for call in calls)
    answer = Counter(
        json.loads(call["text"]).get("comment") for call in calls if call["prompt"] == "strategist"
    )
    lines = []
    for kind in sorted((GOOD, *PLANTED)):
        own = [(rules, last) for planted, rules, last in met if planted == kind]
        by_rules = sum(rules is not passes for rules, _ in own)
        by_reader = sum(rules is passes is not last for rules, last in own)
        passed = len(own) - by_rules - by_reader
        lines.append((kind, str(answer[kind]), str(len(own)), str(by_rules), str(by_reader), str(passed)))
    request = prompts["policy_level_reflection"]
    in_vain = sum(rules is sent_back for _, rules, _ in met)
    good = [(rules, last) for planted, rules, last in met if planted == GOOD]
    by_rules = sum(rules is not passes for rules, _ in good)
    by_reader = sum(rules is passes is not last for rules, last in good)
    overruled = document["policy_loop"]["finding_codes"].get("objection_overruled", 0)
    sys.stdout.write(
        table(("planted", "replies", "reflected on", "stopped by rules", "by the reader", "passed"), lines)
        + f"\n\nreader asked: {request} where the rules say pass; "
        f"{request + in_vain} where they do not block\n"
        f"good plans stopped by rules: {by_rules} of {len(good)} ({by_rules / len(good):.1%}); "
        f"by the reader: {by_reader} ({by_reader / len(good):.1%}), {overruled} of its objections overruled\n"
        f"a reply that is not reflected on was refused by its form; errors: {document['errors']}\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
