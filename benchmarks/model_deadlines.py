"""Whether a second reader answers in time on each timeframe, and how large the questions to models are.

Runs over generated bars ask a server on loopback that speaks the Messages API and waits 0.1, 1 and 3 seconds
before each reply, with the deadlines of the settings; sizes are those of the questions of a run over embedded
bars. `uv run python -m benchmarks.model_deadlines` prints both tables and how long a bar of two symbols
waits, asked together and one after the other; `--deadline-ms` sets one deadline.
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from agents.language_models.anthropic import AnthropicModel
from agents.language_models.retrying import RetryingModel
from schemas.settings import LlmSettings, PolicyLoopSettings, ReflectionSettings, Settings
from schemas.settings.llm import RunLimits
from schemas.timeframes import Timeframe
from schemas.vocabulary import PolicyEventKind
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.model_calls.language_model import ModelReply
from tests.agents.language_models.wire_server import Handler, answer, message, serve
from tools.docs_pages import table
from trading_core.bars import BarSeries
from trading_core.tick_guard import TickGuard
from worker.bootstrap import assemble
from worker.feeds.sample_data import load_embedded_bars
from worker.feeds.sample_data.worlds import make_world
from worker.models import Models, Overrides
from worker.runs.backtest import run_backtest
from worker.session import Timing

DELAYS_S = (0.1, 1.0, 3.0)
TIMEFRAMES: tuple[Timeframe, ...] = ("1m", "5m", "15m", "1h", "1d")
CALLS = 10
BARS = 5
SPAN = ("2003-01-01", "2003-12-31")
AGREES = json.dumps({"findings": [], "objections": [], "verdict": "pass", "comment": None})
ABSTAINS = json.dumps({"because": [], "answer": "abstain"})
BYTES_PER_TOKEN = 4  # of English and JSON, roughly; the ledger charges twice as much where nothing is counted


@dataclass(frozen=True)
class Share:
    """Second readings of one run.

    Attributes:
        where: timeframe of a market that runs on, or that the market waits.
        deadline_ms: of an event.
        delay_s: before the server answers.
        asked: calls made.
        finished: replies that came in time.
    """

    where: str
    deadline_ms: float
    delay_s: float
    requested: int
    finished: int


@dataclass(frozen=True)
class Size:
    """Estimated tokens of the questions of one caller: the constant part, and the rest at the median."""

    caller: str
    requested: int
    constant: int
    question: int


@dataclass
class Listening:
    """A model that gives one answer and remembers what it was asked."""

    text: str
    requested: list[tuple[str, str]] = field(default_factory=list)

    async def complete(self, *, system: str, prompt: str, max_tokens: int, deadline_ms: float) -> ModelReply:
        """The same reply every time."""
        self.requested.append((system, prompt))
        return ModelReply(self.text, "claude-haiku-5-5", 1, 1, 0.0)


def late(delay_s: float) -> Handler:
    """A server that agrees, after a while."""
    reply = answer(message(AGREES, model="claude-haiku-5-5"))

    async def handle(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(delay_s)
        await reply(writer)

    return handle


def settings_with(deadline_ms: float | None) -> Settings:
    """Mode `full`, a bounded number of calls, and no breaker: every call shall show what it does."""
    llm = LlmSettings(
        model="anthropic/claude-haiku-5-5", breaker_failures=10 * CALLS, per_run=RunLimits(calls=CALLS)
    )
    return Settings(reflection=ReflectionSettings(mode="full", model_deadline_ms=deadline_ms), llm=llm)


async def measure(timeframe: Timeframe, delay_s: float, settings: Settings, *, market_waits: bool) -> Share:
    """One run against one server."""
    async with serve(late(delay_s)) as server:
        wire = AnthropicModel("claude-haiku-5-5", api_key="none", guard=TickGuard(), base_url=server.url)
        wire.open()
        patient = RetryingModel(
            wire, attempts=settings.llm.attempts, first_wait_ms=settings.llm.first_wait_ms
        )
        bars = make_world("reverting", seed=3, bars=1_500, symbols=2, timeframe=timeframe)
        session = assemble(
            settings,
            bars,
            JournalWriter(MemorySink()),
            own=Overrides(models=Models(fast=patient)),
            market_waits=market_waits,
        )
        session.begin()
        timing = Timing()
        while not session.engine.done and session.models.account.ledger.run.calls < CALLS:
            await session.step(timing)
        await patient.close()
    model = session.models.account.document()
    deadline_ms = settings.reflection.deadline_ms(
        PolicyEventKind.REGIME_CHANGE, timeframe, market_waits=market_waits
    )
    where = "backtest, any" if market_waits else timeframe
    return Share(where, deadline_ms, delay_s, model["calls"], model["outcomes"].get("reply", 0))


def all_shares(deadline_ms: float | None = None) -> list[Share]:
    """Every timeframe of a market that runs on, and one that waits, against every delay."""
    settings = settings_with(deadline_ms)
    places: list[tuple[Timeframe, bool]] = [(timeframe, False) for timeframe in TIMEFRAMES]
    return [
        asyncio.run(measure(timeframe, delay_s, settings, market_waits=waits))
        for timeframe, waits in [*places, ("5m", True)]
        for delay_s in DELAYS_S
    ]


async def measure_bars(symbols: int, *, together: bool) -> float:
    """Median seconds of a bar on which so many symbols each ask a server one question that waits 1 s."""
    settings, taken = settings_with(60_000.0), list[float]()
    async with serve(late(1.0)) as server:
        settings = settings.model_copy(
            update={"llm": settings.llm.model_copy(update={"base_url": server.url, "per_run": RunLimits()})}
        )
        os.environ["ANTHROPIC_API_KEY"] = "any"
        bars = make_world("reverting", seed=3, bars=1_500, symbols=symbols, timeframe="1d")
        session = assemble(settings, bars, JournalWriter(MemorySink()))
        early = session.models.account.early
        early.ask = early.ask if together else None
        session.begin()
        timing = Timing()
        while not session.engine.done and len(taken) < BARS:
            before, waited = session.models.account.ledger.run.calls, timing.policy_s
            await session.step(timing)
            if session.models.account.ledger.run.calls - before == symbols:
                taken.append(timing.policy_s - waited)
        await session.models.live.close()
    return statistics.median(taken)


def question_sizes(bars: BarSeries) -> list[Size]:
    """Sizes of what strategist and second reader are asked over the bars."""
    strategist, reader = Listening(ABSTAINS), Listening(AGREES)
    llm = LlmSettings(model="anthropic/claude-haiku-5-5")
    loop = PolicyLoopSettings(strategist="model")
    deciding = Settings(llm=llm, policy_loop=loop)
    reading = Settings(llm=llm, reflection=ReflectionSettings(mode="full"))
    for settings, models in ((deciding, Models(strategist=strategist)), (reading, Models(fast=reader))):
        asyncio.run(run_backtest(settings, bars, JournalWriter(MemorySink()), own=Overrides(models=models)))
    return [_size("strategist", strategist), _size("second reader", reader)]


def _size(caller: str, model: Listening) -> Size:
    constant, question = (
        statistics.median(len(text[part].encode()) for text in model.requested) / BYTES_PER_TOKEN
        for part in (0, 1)
    )
    return Size(caller, len(model.requested), round(constant), round(question))


def deadline_table(shares: Sequence[Share]) -> str:
    """Share of answers in time by where the run is."""
    rows: dict[tuple[str, float], list[str]] = {}
    for share in shares:
        cells = rows.setdefault((share.where, share.deadline_ms), [])
        cells.append(f"{share.finished / share.requested:.0%} of {share.requested}")
    heads = ("bars", "deadline", *(f"server answers after {delay_s:g} s" for delay_s in DELAYS_S))
    return table(heads, [(where, f"{ms:g} ms", *cells) for (where, ms), cells in rows.items()])


def size_table(sizes: Sequence[Size]) -> str:
    """Tokens of a question by who asks."""
    rows = [(size.caller, str(size.requested), f"{size.constant:,}", f"{size.question:,}") for size in sizes]
    return table(("asked by", "questions", "constant part, tokens", "the rest at the median, tokens"), rows)


def bar_line() -> str:
    """How long a bar of two symbols waits, asked together and one after the other."""
    both = [asyncio.run(measure_bars(2, together=together)) for together in (True, False)]
    return "two symbols, a server of 1 s: {:.2f} s a bar together, {:.2f} s one after the other".format(*both)


def main(arguments: Sequence[str]) -> int:
    """Measure and print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--deadline-ms", type=float, help="one for all; by default by timeframe")
    shares = all_shares(parser.parse_args(arguments).deadline_ms)
    sizes = question_sizes(load_embedded_bars(start=SPAN[0], end=SPAN[1]))
    sys.stdout.write(f"{deadline_table(shares)}\n\n{size_table(sizes)}\n\n{bar_line()}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
