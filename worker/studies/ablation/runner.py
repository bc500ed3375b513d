"""Run the arms of an ablation one after the other, each as the backtest that it is, into the store.

The coin's rate is read from the journal of the arm whose vetoes it copies, so that arm runs first. Every kept
run has mode `ablation` and can be verified like any other.
"""

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from schemas.playbook import PlaybookDefinition
from schemas.settings import Settings
from services.journal.chain import JournalRow
from services.journal.writer import JournalWriter
from trading_core.bars import BarSeries
from worker.runs.backtest import run_backtest
from worker.runs.run_result import RunResult
from worker.runs.store_run import BacktestRunner, Progress, record_run
from worker.studies.ablation.arms import Arm, ArmResult, has_model, settings_of
from worker.studies.ablation.random_veto import KIND, Veto, VetoRate, vetoed

if TYPE_CHECKING:
    from services.store import NewRun, RunRecord, Store

MODE = "ablation"
REFLECTED = ("policy_proposal", "policy_reflection")


class UnkeptSink:
    """Takes rows and keeps none: of a run whose head hash is enough."""

    async def write(self, rows: list[JournalRow]) -> None:
        """Forget a batch."""


@dataclass(frozen=True)
class Ablation:
    """Every arm that was run, the coin's runs by seed, and the rates at which they threw."""

    arms: dict[Arm, ArmResult]
    vetoes: tuple[ArmResult, ...]
    rates: tuple[VetoRate, ...]


@dataclass(frozen=True)
class AblationRunner:
    """What every arm shares.

    Attributes:
        new_run: the row of a run, from the arm's settings and name.
        watched: a progress bar with a title.
        keep_all: whether the run of every seed is stored; else only that of the first.
    """

    settings: Settings
    bars: BarSeries
    definitions: Sequence[PlaybookDefinition]
    store: "Store"
    new_run: Callable[[Settings, str], "NewRun"]
    watched: Callable[[str], AbstractContextManager[Progress]]
    keep_all: bool = False

    async def run(self, seeds: int) -> Ablation:
        """All arms in order, then the coin with seeds 0, 1, ..."""
        chosen = [Arm.NO_REFLECTION, Arm.FAST_ONLY, Arm.DETERMINISTIC]
        chosen += [Arm.FULL] if has_model(self.settings) else []
        total = len(chosen) + seeds
        arms = {}
        for number, arm in enumerate(chosen):
            with self.watched(f"arm {number + 1} of {total}: {arm}") as progress:
                arms[arm] = await self._kept(arm, run_backtest, progress)
        run_id = arms[Arm.FAST_ONLY].run_id or ""
        rates = await veto_rates(self.store.journal.rows(run_id, kinds=REFLECTED))
        vetoes = []
        for seed in range(seeds):
            title = f"arm {len(chosen) + seed + 1} of {total}: {Arm.RANDOM_VETO}, seed {seed}"
            with self.watched(title) as progress:
                vetoes.append(await self._vetoed(Veto(rates, seed), progress))
        return Ablation(arms, tuple(vetoes), rates)

    async def _vetoed(self, veto: Veto, progress: Progress) -> ArmResult:
        runner = vetoed_runner(veto)
        if veto.seed == 0 or self.keep_all:
            return await self._kept(Arm.RANDOM_VETO, runner, progress, veto.seed)
        settings = settings_of(Arm.RANDOM_VETO, self.settings)
        journal = JournalWriter(UnkeptSink(), settings.runtime.flush_rows)
        outcome = await runner(settings, self.bars, journal, definitions=self.definitions, progress=progress)
        return self._result(Arm.RANDOM_VETO, outcome, settings, None, veto.seed)

    async def _kept(
        self, arm: Arm, runner: BacktestRunner, progress: Progress, seed: int | None = None
    ) -> ArmResult:
        settings = settings_of(arm, self.settings)
        name = str(arm) if seed is None else f"{arm} {seed}"
        run = self.new_run(settings, name)
        done = await record_run(
            runner, settings, self.bars, self.store, run, definitions=self.definitions, progress=progress
        )
        return self._result(arm, done.outcome, settings, done.record.run_id, seed)

    def _result(
        self, arm: Arm, outcome: Any, settings: Settings, run_id: str | None, seed: int | None
    ) -> ArmResult:
        result: RunResult = outcome
        return ArmResult.of(arm, result, settings, run_id, seed)


def vetoed_runner(veto: Veto) -> BacktestRunner:
    """The backtest with a coin around its plans."""

    async def run(settings: Settings, bars: BarSeries, journal: JournalWriter, **rest: Any) -> RunResult:
        return await run_backtest(settings, bars, journal, prepare=vetoed(veto), **rest)

    return run


async def runner_of(store: "Store", record: "RunRecord") -> BacktestRunner:
    """What runs a stored run again: the backtest, with the coin that the run's journal holds, if any.

    Raises:
        DataError: the journal's coin cannot be read.
    """
    if record.mode != MODE:
        return run_backtest
    rows = [row async for row in store.journal.rows(record.run_id, kinds={KIND})]
    return vetoed_runner(Veto.of(json.loads(rows[0].payload))) if rows else run_backtest


async def veto_rates(rows: AsyncIterator[JournalRow]) -> tuple[VetoRate, ...]:
    """Shares of reflected proposals that were sent back and blocked, by round, from rows in their order."""
    counts: list[dict[str, int]] = []
    number = 0
    async for row in rows:
        payload = json.loads(row.payload)
        if row.kind == "policy_proposal":
            number = payload["round"]
            continue
        if payload.get("amendment") is not None:
            continue  # a coin throws about plans
        counts += [{} for _ in range(number + 1 - len(counts))]
        status = payload["result"]["status"]
        counts[number][status] = counts[number].get(status, 0) + 1
    return tuple(_rate(count) for count in counts) or (VetoRate(0.0, 0.0),)


def _rate(counts: dict[str, int]) -> VetoRate:
    total = max(sum(counts.values()), 1)
    return VetoRate(counts.get("revise", 0) / total, counts.get("block", 0) / total)
