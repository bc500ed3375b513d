"""F8: bars that come twice, late, out of order, contradicted or never, under the trading loop on real feeds.

Each seed is traded with faults that are mended before their row goes, and with bars that are lost for good;
each time beside a run on the same bars, which come as they are.
"""

import os
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tests.soak.findings import Finding
from tests.soak.scale import scaled
from tests.worker.feeds.planted import Plan, Shares, planted
from tests.worker.feeds.planted_exchange import PlannedMarket
from tests.worker.feeds.planted_file import PlannedFile
from tests.worker.live.bad_markets import Run, clean_run, market, traded

ROWS, SYMBOLS, HISTORY = 20_000, 3, 300
SEEDS = {"growing file": (0, 1), "exchange": (2, 3)}
WAYS = {
    "mended in time": Shares(twice=0.01, withheld=0.01, disordered=0.01, outages=0.001),
    "lost for good": Shares(
        twice=0.01,
        disordered=0.01,
        late=0.003,
        lost=0.007,
        contradicted=0.0005,
        disputed=0.0005,
        silences=0.0003,
        outages=0.001,
    ),
}
TARGET = (
    "decisions equal to those on clean bars where the bars are equal; each fault journalled once; "
    "0 entries on what is missing, stale or contradicted"
)


@dataclass(frozen=True)
class Judged:
    """One seed traded one way.

    Attributes:
        faults: planted, by name.
        shown: anomalies in the journal.
        compared: journal rows that were compared with those of the clean run.
        orders: entries that were ordered.
        forbidden: of them, where nobody might enter.
        held_back: triggers that fired where nobody might enter.
        exits: on such rows.
        breaks: what did not hold.
    """

    faults: Counter[str]
    shown: int
    compared: int
    orders: int
    forbidden: int
    held_back: int
    exits: int
    breaks: list[str]


def rows() -> int:
    """Rows of one seed; a tenth of them would hold too few faults."""
    return max(4_000, scaled(ROWS))


def one(kind: str, way: str, seed: int) -> Judged:
    """One seed on one feed."""
    plan = planted(market(seed, rows(), SYMBOLS), seed, WAYS[way], HISTORY)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bars.csv"
        feed: Any = PlannedFile(path, plan) if kind == "growing file" else PlannedMarket(plan)
        return _judged(plan, feed, traded(feed, verify=True))


def _judged(plan: Plan, feed: Any, run: Run) -> Judged:
    sent = plan.rows(feed.settings)
    clean = clean_run(plan.series, run.traded)
    forbidden = len(run.blocked("order_accepted"))
    shown, expected = run.shown(), feed.shown()
    held = {
        "rows are not those of the clean feed": run.rows == sent,
        "a decision differs": run.decisions("feed_anomaly") == clean.decisions("feed_anomaly"),
        f"{forbidden} entries where nobody might enter": not forbidden,
        f"not told: {sorted(map(str, expected - shown))[:3]}": not expected - shown,
        f"told too often: {sorted(map(str, shown - expected))[:3]}": not shown - expected,
        "the replay differs": run.verified,
        "an error was journalled": not run.of("error"),
    }
    return Judged(
        plan.counts(),
        shown.total(),
        len(run.decisions("feed_anomaly")),
        len(run.of("order_accepted")),
        forbidden,
        len(run.blocked("activation_triggered")),
        len(run.blocked("exit_filled", "scale_out_filled")),
        [text for text, holds in held.items() if not holds],
    )


def check() -> list[Finding]:
    """Both feeds, both ways."""
    questions = [(kind, way, seed) for kind, seeds in SEEDS.items() for way in WAYS for seed in seeds]
    cores = min(2, os.cpu_count() or 1)
    with ProcessPoolExecutor(cores, mp_context=get_context("spawn")) as pool:
        judged = dict(zip(questions, pool.map(one, *zip(*questions, strict=True)), strict=True))
    return [
        _finding(kind, way, {seed: judged[kind, way, seed] for seed in seeds})
        for kind, seeds in SEEDS.items()
        for way in WAYS
    ]


def _finding(kind: str, way: str, judged: dict[int, Judged]) -> Finding:
    breaks = [f"seed {seed}: {text}" for seed, entry in judged.items() for text in entry.breaks]
    faults = sum((entry.faults for entry in judged.values()), Counter[str]())
    named = ", ".join(f"{count:,} {name}" for name, count in sorted(faults.items()) if count)

    def total(name: str) -> str:
        return f"{sum(getattr(entry, name) for entry in judged.values()):,}"

    return Finding(
        "F8",
        f"{kind}, faults {way}: {rows():,} one-minute rows of {SYMBOLS} symbols, {len(judged)} seeds",
        TARGET,
        f"planted: {named}; {total('shown')} anomalies journalled, {total('compared')} journal rows compared "
        f"with the clean run, {len(breaks)} broken; {total('orders')} entries, {total('forbidden')} of them "
        f"where nobody might enter, while {total('held_back')} triggers fired and {total('exits')} "
        "exits were taken there",
        not breaks,
        tuple(breaks),
    )
