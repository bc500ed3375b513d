"""Looks at runs whose models are asked over a wire that is made up, in virtual time."""

import asyncio
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from math import ceil
from pathlib import Path
from typing import Any

import pytest

from agents.model_seats import seats_of, text_models_of
from agents.reply_forms import SEAT_FORMS, due_of
from schemas.errors import ConfigError, ModelError
from schemas.settings import Settings
from schemas.settings.providers import PROVIDERS
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.model_calls.account import ModelAccount
from services.model_calls.language_model import ModelReply
from services.model_calls.reply_format import ReplyFormat
from tests.agents.test_judge_model import REPORT, RULES
from tests.worker.live.virtual_time import run_virtually
from tests.worker.settings_walk.runs_seen import rows_of
from tests.worker.shared_runs import embedded_bars
from trading_core.bars import BarSeries
from trading_core.clock import SimulatedClock
from trading_core.tick_guard import TickGuard
from worker.bootstrap import assemble
from worker.models import caller_of, configured_models
from worker.runs.backtest import run_backtest

AGREES = json.dumps({"verdict": "pass", "comment": "Fine.", "findings": [], "deferred_needs": []})
COARSE_MS = 5_000.0  # real milliseconds of thinking come off a deadline
BUDGETS = {"reflection.budget_event_ms": 20_000.0, "reflection.budget_heartbeat_ms": 20_000.0}
FULL = {"reflection.mode": "full", "llm.model": "anthropic/claude-haiku-5-5", **BUDGETS}
PROPOSING = {"policy_loop.strategist": "model", "llm.model": "anthropic/claude-haiku-5-5"}
JUDGING = {"judge.replan": "model", "llm.model": "anthropic/claude-haiku-5-5"}


@cache
def months() -> BarSeries:
    """Nine months of the embedded bars, with a few evaluations."""
    return embedded_bars("2003-01-01", "2003-09-30")


class Wire:
    """Stands for the model behind the API: writes down how it was made and asked, and replies or fails."""

    requested: list[Any] = []
    temperatures: list[Any] = []
    failing = turned_away = False
    reply = AGREES
    takes_s = 0.0

    def __init__(
        self,
        name: str,
        *,
        stall_ms: float | None,
        effort: str,
        thought_tokens: int,
        base_url: str | None,
        reply_format: ReplyFormat | None,
        accept: tuple[str, ...],
        temperature: float | None,
        **_: Any,
    ) -> None:
        form = None if reply_format is None else reply_format.name
        self.temperatures.append([form, temperature])
        self.name, self.made = name, [name, stall_ms, effort, thought_tokens, base_url, form, accept]

    def open(self) -> None:
        """Nothing to open."""

    async def close(self) -> None:
        """Nothing to close."""

    async def complete(self, *, system: str, prompt: str, max_tokens: int, deadline_ms: float) -> ModelReply:
        now_ms = round(asyncio.get_running_loop().time() * 1e3, 3)
        self.requested.append([*self.made, max_tokens, ceil(deadline_ms / COARSE_MS), now_ms])
        if self.takes_s:
            await asyncio.sleep(self.takes_s)
        if self.turned_away and len(self.requested) > 1:
            raise ModelError("no credit", kind="rejected", status=400)
        if self.failing:
            raise ModelError("overloaded", retryable=True, kind="overloaded")
        return ModelReply(self.reply, self.name, 1_000, 100, 0.1)


def provided(wire: str) -> type[Wire]:
    """The wire, whoever is asked."""
    return Wire


@contextmanager
def on_the_wire(failing: bool = False) -> Iterator[type[Wire]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("worker.models.wire_model", provided)
        for provider in PROVIDERS.values():
            patch.setenv(provider.key, "test-key")
        patch.setattr(Wire, "requested", [])
        patch.setattr(Wire, "temperatures", [])
        patch.setattr(Wire, "failing", failing)
        yield Wire


def looked(settings: Settings, failing: bool) -> Any:
    """What the models were asked in a run, what is recorded of it, and what it cost."""
    sink = MemorySink()
    with on_the_wire(failing) as wire:
        made = run_virtually(run_backtest(settings, months(), JournalWriter(sink)))
        calls = wire.requested
    document = made.document("r", "memory")
    spent = {
        name: value
        for name, value in document["model"].items()
        if name not in ("latency_ms", "latencies_ms", "forecast")
    }
    shown = rows_of(sink.rows, ("model_budget", "model_breaker", "policy_proposal"))
    label, early = document["contamination"]["label"], document["ended_early"]
    return [calls, shown, spent, document["strategist"], label, early]


def read_requests(settings: Settings) -> Any:
    return looked(settings, failing=False)


def asked_in_vain(settings: Settings) -> Any:
    return looked(settings, failing=True)


def turned_away(settings: Settings) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Wire, "turned_away", True)
        return looked(settings, failing=False)


def judged(settings: Settings) -> Any:
    """Who judges a report of a session, and how its model was made."""

    async def judging() -> Any:
        made = assemble(settings, months(), JournalWriter(MemorySink()))
        return (await made.slow_loop._judge.replan(REPORT, (), 0)).fallback

    with on_the_wire() as wire, pytest.MonkeyPatch.context() as patch:
        patch.setattr("agents.judge_agent_client.replan", lambda *_: RULES)
        return [run_virtually(judging()), [item[:7] for item in wire.requested]]


def paced(settings: Settings) -> Any:
    """When each of several questions that are asked at once is sent, and how they end."""

    async def asked_at_once() -> Any:
        model = configured_models(settings, TickGuard(), os.environ).fast
        assert model is not None
        asking = [
            model.complete(system="s", prompt="p", max_tokens=8, deadline_ms=30_000.0) for _ in range(12)
        ]
        ends = await asyncio.gather(*asking, return_exceptions=True)
        return [end.text if isinstance(end, ModelReply) else str(end) for end in ends]

    with on_the_wire() as wire, pytest.MonkeyPatch.context() as patch:
        patch.setattr(Wire, "takes_s", 1.0)
        return [run_virtually(asked_at_once()), [item[-1] for item in wire.requested]]


def temperatures(settings: Settings) -> Any:
    """Which temperature each prompt of a run is sent."""
    with on_the_wire() as wire:
        configured_models(settings, TickGuard(), os.environ)
        return wire.temperatures


def texts_admitted(settings: Settings) -> Any:
    """How many calls for texts are admitted before one is refused."""
    due = due_of(seats_of(settings), text_models_of(settings))
    account = ModelAccount(settings.llm, JournalWriter(MemorySink()), SimulatedClock(), due)
    caller = caller_of(settings, settings.llm.slow_model, SEAT_FORMS["slow"], "ab" * 32)
    with suppress(ModelError):
        for _ in range(100):
            account.admit(caller, "s", "p", 8)
    return len(account._pending)


def kept(settings: Settings) -> Any:
    """What a run recorded of its models beside it, or why it was refused."""
    try:
        read_requests(settings)
    except ConfigError as error:
        return str(error)
    return sorted(path.name for path in Path().glob("*.jsonl"))
