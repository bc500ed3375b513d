"""How many consolidations finish in budget when the model takes 0.1, 1 and 5 seconds to answer.

A run over embedded bars asks a server on loopback that speaks the Messages API and waits before each
reply. `uv run python -m benchmarks.consolidation_budget` prints the table; `--budget-ms` sets another budget
than the default one of events and heartbeats.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agents.language_models.anthropic import AnthropicModel
from agents.language_models.retrying import RetryingModel
from schemas.config import LlmSettings, ReflectionSettings, Settings
from schemas.language_model import RunLimits
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from tests.agents.language_models.wire_server import Handler, answer, message, serve
from tools.docs_pages import table
from trading_core.tick_guard import TickGuard
from worker.backtest import run_backtest
from worker.models import Models
from worker.sample_data import load_embedded_bars

DELAYS_S = (0.1, 1.0, 5.0)
CALLS = 24
SPAN = ("2003-01-01", "2003-12-31")
AGREES = {"verdict": "pass", "summary": "Fine.", "findings": [], "deferred_needs": []}


@dataclass(frozen=True)
class Share:
    """Consolidations of one run.

    Attributes:
        delay_s: before the server answers.
        asked: calls made.
        finished: replies that came within the budget.
        p95_ms: of the whole fast reflection, those without a call included.
        slowest_ms: of the calls.
    """

    delay_s: float
    asked: int
    finished: int
    p95_ms: float
    slowest_ms: float


def late(delay_s: float) -> Handler:
    """A server that agrees, after a while."""
    reply = answer(message(json.dumps(AGREES), model=LlmSettings().fast_model))

    async def handle(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(delay_s)
        await reply(writer)

    return handle


def settings_with(budget_ms: float | None) -> Settings:
    """Mode `full`, a bounded number of calls, and no breaker: every call shall show what it does."""
    budgets: dict[str, Any] = {}
    if budget_ms is not None:
        budgets = {"budget_event_ms": budget_ms, "budget_heartbeat_ms": budget_ms}
    llm = LlmSettings(provider="anthropic", breaker_failures=10 * CALLS, per_run=RunLimits(calls=CALLS))
    return Settings(reflection=ReflectionSettings(mode="full", **budgets), llm=llm)


async def measure(delay_s: float, budget_ms: float | None) -> Share:
    """One run against one server."""
    settings = settings_with(budget_ms)
    async with serve(late(delay_s)) as server:
        wire = AnthropicModel(settings.llm.fast_model, api_key="none", guard=TickGuard(), base_url=server.url)
        wire.open()
        patient = RetryingModel(
            wire, attempts=settings.llm.attempts, first_wait_ms=settings.llm.first_wait_ms
        )
        journal = JournalWriter(MemorySink())
        bars = load_embedded_bars(start=SPAN[0], end=SPAN[1])
        run = await run_backtest(settings, bars, journal, models=Models(fast=patient))
    document = run.document("bench", "memory")
    model = document["model"]
    return Share(
        delay_s,
        model["calls"],
        model["outcomes"].get("reply", 0),
        document["policy_loop"]["reflection_latency_ms"]["p95"],
        model["latency_ms"]["p99"],
    )


def budget_table(shares: Sequence[Share]) -> str:
    """The table of the page."""
    rows = [
        (
            f"{one.delay_s:g} s",
            str(one.asked),
            f"{one.finished / one.asked:.0%}",
            f"{one.slowest_ms:.0f} ms",
            f"{one.p95_ms:.0f} ms",
        )
        for one in shares
    ]
    return table(("server answers after", "asked", "in budget", "call p99", "reflection p95"), rows)


def main(arguments: Sequence[str]) -> int:
    """Measure every delay and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget-ms", type=float, help="for every event; the defaults are 250 and 500")
    budget_ms = parser.parse_args(arguments).budget_ms
    shares = [asyncio.run(measure(delay_s, budget_ms)) for delay_s in DELAYS_S]
    sys.stdout.write(budget_table(shares) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
