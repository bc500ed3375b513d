"""Run the arms of an ablation one after the other, each as the backtest that it is, into the store.

The coin's rate is read from the journal of the arm whose vetoes it copies, so that arm runs first. Every kept
run has mode `ablation` and can be verified like any other.

The coin stands around the plan provider of a run with reflection switched off and never looks at a plan: all
it knows is the hash of the snapshot, its seed and how many rounds were used. What follows a veto is what
follows one of the reflection: a bounded resubmission, then a stand-down. Only the ablation builds it, and no
setting does. Its rates and its seed stand in the journal of the run, so that the run can be replayed.
"""

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, cast

from schemas.errors import ConfigError, DataError, InvariantViolation
from schemas.invocation import ReflectionInvocationMeta
from schemas.playbook import PlaybookDefinition
from schemas.reflection import InvariantContext, PolicyAmendmentRequest, PolicyLevelReflectionResult
from schemas.settings import Settings
from schemas.snapshot import PolicySnapshot
from services.journal.chain import JournalRow
from services.journal.sinks import DiscardingSink
from services.journal.writer import JournalWriter
from services.policy_loop.snapshot_builder import feature_names
from services.ports import Plan, PlanEnd, PlanProvider, PlanRound, Revision, RevisionBudget
from trading_core.bars import BarSeries
from worker.models import NO_OVERRIDES, Overrides
from worker.runs.backtest import run_backtest
from worker.runs.progress import Progress
from worker.runs.run_result import RunResult
from worker.runs.store_run import BacktestRunner, record_run
from worker.session import Session
from worker.studies.ablation.arms import Arm, ArmResult, has_model, settings_of
from worker.studies.executors.agent_runs import run_alone
from worker.studies.executors.choosing import opened_executor
from worker.studies.executors.kept_answers import run_tasks
from worker.studies.executors.named_features import NamedFeature, load_features, named_features
from worker.studies.executors.shared_bars import shared_bars

if TYPE_CHECKING:
    from services.store import NewRun, RunRecord, Store

MODE = "ablation"
POOL_PAYS = 100_000  # symbol-bars of all runs together, from which on processes earn their start
KIND = "run_random_veto"
REASON = "random veto"
REFLECTED = ("policy_proposal", "policy_reflection")


@dataclass(frozen=True)
class VetoRate:
    """Share of proposals of one round that are sent back, and of those that are blocked."""

    revise: float
    block: float


@dataclass(frozen=True)
class Veto:
    """A coin: rates by round (the last one holds for later rounds) and the seed of its throws."""

    rates: tuple[VetoRate, ...]
    seed: int

    def end(self, snapshot_hash: str, used: int) -> PlanEnd:
        """PASSED, BLOCKED, or STAND_DOWN for a proposal that is sent back."""
        digest = sha256(f"{self.seed}|{snapshot_hash}|{used}".encode()).digest()
        throw = int.from_bytes(digest[:8], "big") / 2.0**64
        rate = self.rates[min(used, len(self.rates) - 1)]
        if throw < rate.block:
            return PlanEnd.BLOCKED
        return PlanEnd.STAND_DOWN if throw < rate.block + rate.revise else PlanEnd.PASSED

    def payload(self) -> dict[str, Any]:
        """What the journal keeps."""
        return {"seed": self.seed, "rates": [vars(rate) for rate in self.rates]}

    @classmethod
    def of(cls, payload: dict[str, Any]) -> "Veto":
        """The veto of a journal row.

        Raises:
            DataError: the row is not one.
        """
        try:
            rates = tuple(VetoRate(float(rate["revise"]), float(rate["block"])) for rate in payload["rates"])
            return cls(rates, int(payload["seed"]))
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"a row {KIND!r} holds no veto ({error!r}): the journal was changed") from error


class RandomVeto:
    """A plan provider that refuses plans of another one by a coin.

    Args:
        inner: where plans come from; it reflects on nothing.
        veto: the coin.
    """

    def __init__(self, inner: PlanProvider, veto: Veto) -> None:
        self._inner = inner
        self._veto = veto

    async def provide(
        self,
        snapshot: PolicySnapshot,
        invariants: InvariantContext,
        budget: RevisionBudget,
        revision: Revision | None = None,
    ) -> Plan:
        """Answers until the coin lets one pass, blocks one, or the rounds are used."""
        rounds: list[PlanRound] = []
        while True:
            plan = await self._inner.provide(snapshot, invariants, budget, revision)
            rounds += plan.rounds
            if plan.end is not PlanEnd.PASSED:
                return Plan(plan.end, tuple(rounds), plan.reason)
            end = self._veto.end(snapshot.content_hash, budget.used)
            if end is PlanEnd.PASSED:
                return Plan(end, tuple(rounds), plan.reason)
            # Without its invocation record a round can never be frozen, whatever is said of it later.
            rounds[-1] = PlanRound(plan.last.answer)
            if end is PlanEnd.BLOCKED or not budget.take():
                return Plan(end, tuple(rounds), REASON)
            if plan.last.answer.proposal is None:
                raise InvariantViolation("a plan passed without a proposal")
            revision = Revision(plan.last.answer.proposal, (), REASON, budget.used)

    def reflect_amendment(
        self, request: PolicyAmendmentRequest
    ) -> PolicyLevelReflectionResult | ReflectionInvocationMeta:
        """That of the other one: the coin is about plans."""
        return self._inner.reflect_amendment(request)


def install_veto(veto: Veto) -> Callable[[Session], None]:
    """What puts the coin into a session that has begun; see `run_backtest`."""

    def prepare(session: Session) -> None:
        if session.settings.reflection.mode != "off":
            raise InvariantViolation(
                "a random veto stands in for the reflection: reflection.mode must be 'off'"
            )
        first = int(session.bars.times[0])
        session.journal.append(KIND, ts_event=first, known_at=first, payload=veto.payload())
        session.policy_loop.provider = RandomVeto(session.policy_loop.provider, veto)

    return prepare


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
        executor: where the runs go that are not stored, see `opened_executor`; None: processes where they
            pay, and this process where a model is asked.
    """

    settings: Settings
    bars: BarSeries
    definitions: Sequence[PlaybookDefinition]
    store: "Store"
    new_run: Callable[[Settings, str], "NewRun"]
    watched: Callable[[str], AbstractContextManager[Progress]]
    keep_all: bool = False
    executor: Any = None

    async def run(self, seeds: int) -> Ablation:
        """All arms in order, then the coin with seeds 0, 1, ..."""
        chosen = [Arm.NO_REFLECTION, Arm.FAST_ONLY, Arm.DETERMINISTIC]
        chosen += [Arm.FULL] if has_model(self.settings) else []
        total = len(chosen) + seeds
        arms = {}
        for number, arm in enumerate(chosen):
            with self.watched(f"arm {number + 1} of {total}: {arm}") as progress:
                arms[arm] = await self._run_arm(arm, run_backtest, progress)
        run_id = arms[Arm.FAST_ONLY].run_id or ""
        rates = await veto_rates(self.store.journal.rows(run_id, kinds=REFLECTED))
        vetoes, stored = [], seeds if self.keep_all else min(seeds, 1)
        for seed in range(stored):
            title = f"arm {len(chosen) + seed + 1} of {total}: {Arm.RANDOM_VETO}, seed {seed}"
            with self.watched(title) as progress:
                runner = vetoed_runner(Veto(rates, seed))
                vetoes.append(await self._run_arm(Arm.RANDOM_VETO, runner, progress, seed))
        if stored < seeds:
            title = f"arms {len(chosen) + stored + 1} to {total} of {total}: {Arm.RANDOM_VETO}"
            with self.watched(title) as progress:
                vetoes += self._run_unstored([Veto(rates, seed) for seed in range(stored, seeds)], progress)
        return Ablation(arms, tuple(vetoes), rates)

    def _run_unstored(self, vetoes: Sequence[Veto], progress: Progress) -> list[ArmResult]:
        """Runs that only their figures are kept of, wherever tasks run; the same wherever that is."""
        settings, rows = settings_of(Arm.RANDOM_VETO, self.settings), self.bars.shape[0]
        executor, features = self._executor_of(settings.uses_models, len(vetoes))
        with opened_executor(executor, tasks=len(vetoes)) as opened:
            key = opened.share(self.bars)
            shared = settings.payload(), tuple(book.payload() for book in self.definitions), key, features
            tasks = {f"{Arm.RANDOM_VETO} {veto.seed}": VetoedTask(*shared, veto) for veto in vetoes}
            found = run_tasks(
                opened, run_vetoed, tasks, None, lambda done, of: progress(done * rows, (of or 0) * rows)
            )
        return [found[name]["result"] for name in tasks]

    def _executor_of(self, asks: bool, runs: int) -> tuple[Any, tuple[NamedFeature, ...]]:
        """Where runs go, and the features that workers import for them."""
        if self.executor is None and (asks or runs * self.bars.bar_count < POOL_PAYS):
            return "serial", ()
        try:
            return self.executor, named_features(feature_names(self.definitions, self.bars.timeframe))
        except ConfigError:
            if self.executor is None or self.executor == "serial":
                return "serial", ()  # this process has what the script defines
            raise

    async def _run_arm(
        self, arm: Arm, runner: BacktestRunner, progress: Progress, seed: int | None = None
    ) -> ArmResult:
        settings = settings_of(arm, self.settings)
        name = str(arm) if seed is None else f"{arm} {seed}"
        run = self.new_run(settings, name)
        done = await record_run(
            runner, settings, self.bars, self.store, run, definitions=self.definitions, progress=progress
        )
        return ArmResult.of(arm, cast(RunResult, done.outcome), settings, done.record.run_id, seed)


@dataclass(frozen=True)
class VetoedTask:
    """One run of the coin whose journal nobody keeps; see `AgentTask`."""

    settings: dict[str, Any]
    playbooks: tuple[dict[str, Any], ...]
    bars: str
    features: tuple[NamedFeature, ...]
    veto: Veto


def run_vetoed(task: VetoedTask) -> dict[str, ArmResult]:
    """The `result` of a run."""
    load_features(task.features)
    settings = Settings.model_validate(task.settings)
    books = [PlaybookDefinition.model_validate(book) for book in task.playbooks]
    journal = JournalWriter(DiscardingSink(), settings.runtime.flush_rows)
    run = vetoed_runner(task.veto)(settings, shared_bars(task.bars), journal, definitions=books)
    outcome = cast(RunResult, run_alone(run))
    return {"result": ArmResult.of(Arm.RANDOM_VETO, outcome, settings, None, task.veto.seed)}


def vetoed_runner(veto: Veto) -> BacktestRunner:
    """The backtest with a coin around its plans."""

    async def run(
        settings: Settings,
        bars: BarSeries,
        journal: JournalWriter,
        *,
        own: Overrides = NO_OVERRIDES,
        **rest: Any,
    ) -> RunResult:
        tossing = replace(own, prepare=install_veto(veto))
        return await run_backtest(settings, bars, journal, own=tossing, **rest)

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
    """Shares of reflected proposals that were sent back and blocked, by round, from rows in their order.

    A base that was not offered for what the reflection would have found counts as a round that sent it back.
    """
    counts: list[dict[str, int]] = []
    number = 0

    def count(status: str) -> None:
        counts.extend({} for _ in range(number + 1 - len(counts)))
        counts[number][status] = counts[number].get(status, 0) + 1

    async for row in rows:
        payload = json.loads(row.payload)
        if row.kind == "policy_proposal":
            number = payload["round"]
            if payload["passed_over"]:
                count("revise")
                number += 1
        elif payload.get("amendment") is None:  # a coin throws about plans
            count(payload["result"]["status"])
    return tuple(_rate(count) for count in counts) or (VetoRate(0.0, 0.0),)


def _rate(counts: dict[str, int]) -> VetoRate:
    total = max(sum(counts.values()), 1)
    return VetoRate(counts.get("revise", 0) / total, counts.get("block", 0) / total)
