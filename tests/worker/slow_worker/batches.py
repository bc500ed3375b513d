"""A paper run that traded a lot: seeded bars, a decision before each trade, and one losing playbook."""

from functools import cache
from typing import Any

from schemas.canonical import content_id
from schemas.playbook import PlaybookDefinition
from schemas.settings import RuntimeSettings, Settings
from services.journal.sinks import StoreSink
from services.journal.writer import JournalWriter
from services.playbooks.loader import load_playbooks
from services.playbooks.registry import PlaybookRegistry
from services.slow_loop.loop_rows import journal_version
from services.store import open_store
from tests.services.high_level.builders import episode
from tests.services.store.stores import new_run
from tests.worker.live.paper_runs import rows_of
from trading_core.bars import BarSeries
from trading_core.tick_guard import TickGuard
from worker.feeds.sample_data.worlds import make_world
from worker.slow_worker.subprocess_main import ChildJob

HOUR = 3_600 * 10**9
SYMBOLS = 5
OUTCOMES = {
    "mean_reversion": (-1.0, 0.2, -0.9),
    "trend_pullback": (-0.9, 1.2, 0.3),
    "squeeze_breakout": (1.5, -1.0, 0.1),
}
REGIMES = ("up/low", "up/mid", "down/mid", "sideways/high", "sideways/low")
FIRST_TRADE = 100


@cache
def definitions() -> dict[str, PlaybookDefinition]:
    """The embedded playbooks."""
    return {playbook.id: playbook for playbook in load_playbooks(None)}


def world(episodes: int) -> BarSeries:
    """Hourly bars with two trades in each hour after the first hundred."""
    return make_world(
        "reverting", seed=1, bars=FIRST_TRADE + episodes // 2 + 2, symbols=SYMBOLS, timeframe="1h"
    )


def traded(number: int, bars: BarSeries) -> Any:
    """One resolved trade."""
    playbook = sorted(OUTCOMES)[number % len(OUTCOMES)]
    exit_label = int(bars.times[FIRST_TRADE + number // 2])
    return episode(
        definitions()[playbook],
        episode_id=content_id(number),
        symbol=bars.symbols[number % SYMBOLS],
        regime=REGIMES[number // 7 % len(REGIMES)],
        fingerprint=ranks(number),
        entry_label=exit_label - 2 * HOUR,
        exit_label=exit_label,
        known_at=exit_label + HOUR,
        r=OUTCOMES[playbook][number // 3 % 3],
    )


def ranks(number: int) -> tuple[float, ...]:
    """Five ranks that wander."""
    return tuple((number * step % 101) / 100 for step in (7, 13, 29, 37, 53))


async def prepared_batch(address: str, episodes: int) -> tuple[str, int]:
    """A store with such a run: its id, and the slot after its last trade."""
    bars = world(episodes)
    data = {"symbols": list(bars.symbols), "timeframe": "1h", "label": "open"}
    async with await open_store(address, create=True) as store:
        run_id = (await store.runs.create(new_run(mode="paper", data=data))).run_id
        lease = await store.leases.take(f"trading/{run_id}", "trader", 60_000)
        assert lease is not None
        await store.trading.commit(lease, run_id, list(enumerate(rows_of(bars))), [])
        journal = JournalWriter(StoreSink(store.journal, run_id))
        _begin(journal, bars)
        for number in range(episodes):
            _resolve(journal, traded(number, bars), number)
        await journal.flush()
        await store.leases.release(lease)
    day = 24 * HOUR
    return run_id, -(-int(bars.close_times[-1]) // day) * day


def looking_job(address: str, run_id: str, owner: str = "host:1:a") -> ChildJob:
    """What the process that looks at it is told."""
    settings = Settings(runtime=RuntimeSettings(db=address))
    return ChildJob(address, run_id, settings.payload(), owner, 60_000)


def _begin(journal: JournalWriter, bars: BarSeries) -> None:
    start = int(bars.times[0])
    genesis = {
        "config_hash": "c" * 64,
        "symbols": list(bars.symbols),
        "timeframe": "1h",
        "label": "open",
        "seed": 0,
    }
    journal.append("genesis", ts_event=start, known_at=start, payload=genesis)
    for version in PlaybookRegistry(tuple(definitions().values()), TickGuard(), start).reader().active():
        journal_version(journal, version, start)


def _resolve(journal: JournalWriter, one: Any, number: int) -> None:
    trend, volatility = one.regime.split("/")
    labels = {"trend": trend, "volatility": volatility, "structure": "neutral"}
    regime = {"labels": labels, "fingerprint": ranks(number)}
    decided = one.known_at - 3 * HOUR
    journal.append(
        "policy_snapshot", ts_event=decided, known_at=one.known_at, symbol=one.symbol,
        payload={"event_id": f"evt-{number}", "snapshot": {"bar_label": one.entry_label, "regime": regime}},
    )  # fmt: skip
    journal.append(
        "episode", ts_event=one.known_at, known_at=one.known_at, symbol=one.symbol,
        payload={"episode_id": one.episode_id, "episode": one.payload()},
    )  # fmt: skip
