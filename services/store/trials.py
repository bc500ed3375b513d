"""The ledger of trials in a store: which configurations were tried on which bars, and what came of them.

Each run has its own row, written when it begins and as it advances. What a run starts with is counted once,
in the transaction that enters it, so of runs that begin together one sees the other. A configuration that
comes again on the same bars is the trial that it was, and starts with what that one started with.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, Select, func, select, text, update

from schemas.trials import MOST, TrialCounts, TrialLedger
from services.store.connections import AsyncConnection
from services.store.failures import MEND, StoreDamaged, losses_of, readable
from services.store.operator_requests import tell_of_rule
from services.store.repository import Repository
from services.store.seals import missing_rows, require_sealed, seal_row, sealed_rows
from services.store.tables import paper_bars, trials

Key = tuple[str, str, str]
RULE = "rule:"  # begins the name of a rule that was tried outside every run
SWEEP = "sweep:"  # of a search over parameter sets; their number follows


@dataclass(frozen=True)
class TriedOn:
    """A configuration and the bars that it is tried on.

    Attributes:
        config_hash, playbooks: hashes of the settings and of the set of playbooks.
        data: what tells these bars from others that begin at the same time: a hash of their first row.
        timeframe, symbols: of the bars.
        first_label, last_label: ns, of the first and the last row; None while rows are still to come.
    """

    config_hash: str
    playbooks: str
    data: str
    timeframe: str
    symbols: tuple[str, ...]
    first_label: int
    last_label: int | None

    @property
    def key(self) -> Key:
        """What makes it the same trial again: longer bars with the same beginning are looked at again."""
        return self.config_hash, self.playbooks, self.data

    def meets(self, other: "TriedOn") -> bool:
        """Whether some bar of some symbol is in both."""
        return self.timeframe == other.timeframe and self.overlaps(other)

    def overlaps(self, other: "TriedOn") -> bool:
        """Whether both see some symbol at some time, in whatever timeframe."""
        if not set(self.symbols) & set(other.symbols):
            return False
        return _reaches(self, other.first_label) and _reaches(other, self.first_label)


def _reaches(on: TriedOn, label: int) -> bool:
    return on.last_label is None or on.last_label >= label


@dataclass(frozen=True)
class Trial:
    """A run in the ledger, with what it started with."""

    number: int
    run_id: str
    on: TriedOn
    counts: TrialCounts
    ledger: TrialLedger


def count_before(known: Iterable[Trial], on: TriedOn) -> TrialLedger:
    """What a run starts with that begins now: every distinct trial on overlapping bars counts once."""
    met = []
    for trial in known:
        if trial.on.key == on.key:
            return trial.ledger.model_copy(update={"fresh": False})
        if trial.on.meets(on):
            met.append(trial)
    return sum_trials(by_key(met).values())


def by_key(runs: Iterable[Trial]) -> dict[Key, list[Trial]]:
    """The runs of each distinct trial."""
    found: dict[Key, list[Trial]] = {}
    for run in runs:
        found.setdefault(run.on.key, []).append(run)
    return found


def sum_trials(groups: Iterable[Sequence[Trial]]) -> TrialLedger:
    """The sums over distinct trials, each given with all of its runs."""
    totals: dict[str, Any] = {"configurations": 0, "hypotheses": 0, "candidates": 0, "promotions": 0}
    for group in groups:
        furthest = max(group, key=lambda run: (run.counts.candidates, run.counts.promotions)).counts
        totals["configurations"] += 1
        totals["hypotheses"] += max(run.counts.hypotheses for run in group)
        totals["candidates"] += furthest.candidates
        totals["promotions"] += furthest.promotions
    return TrialLedger(**{name: min(total, MOST) for name, total in totals.items()})


class TrialRepository(Repository):
    """The ledger of one store."""

    async def begin(self, run_id: str, on: TriedOn, hypotheses: int, *, fresh: bool = False) -> TrialLedger:
        """Enter a run and say what it starts with; one that was entered before keeps what was said.

        Args:
            run_id: the run.
            on: its configuration and bars.
            hypotheses: that its playbooks declare.
            fresh: it starts as on an empty store; what it does not count is in the ledger all the same. Where
                nothing was tried before there is nothing that it would not count.

        Raises:
            StoreDamaged: a row of the ledger cannot be read, or is not as it was sealed.
        """
        with losses_of(run_id):
            async with self._write() as connection:
                trial, _ = await self._enter(connection, run_id, on, hypotheses, fresh=fresh)
        return trial.ledger

    async def note_rule(self, on: TriedOn) -> int:
        """Enter a rule that is tried outside every run: one hypothesis. What comes back is its number.

        Runs that go on on such bars are told: the rule joins the tested family of their next report.

        Raises:
            StoreError: the store cannot be written.
        """
        name = f"{RULE}{on.config_hash[:16]}"
        async with self._write() as connection:
            trial, earlier = await self._enter(connection, name, on, 1)
            met = {known.run_id for known in earlier if known.on.meets(on)}
            if met:
                await tell_of_rule(connection, self._url.dialect, met, trial.number, name)
        return trial.number

    async def note_sweep(self, on: TriedOn, sets: int) -> TrialLedger:
        """Enter a search over so many parameter sets as one row, before they are tried.

        What comes back is what was tried on such bars before; the same search again adds nothing.

        Raises:
            StoreError: the store cannot be written.
        """
        async with self._write() as connection:
            name = f"{SWEEP}{sets}:{on.config_hash[:16]}"
            return (await self._enter(connection, name, on, sets))[0].ledger

    async def _enter(
        self,
        connection: AsyncConnection,
        name: str,
        on: TriedOn,
        hypotheses: int,
        *,
        fresh: bool | None = None,
    ) -> tuple[Trial, list[Trial]]:
        """The trial of this name and the earlier ones on its timeframe; one that is there already has none.

        A run, which alone says whether it is `fresh`, is the same with longer bars, too. No other process
        enters one meanwhile.
        """
        if self._url.dialect == "postgresql":
            await connection.execute(text("LOCK TABLE trials IN EXCLUSIVE MODE"))
        every = await self._find(connection)
        known = [trial for trial in every if trial.on.timeframe == on.timeframe]
        own = [trial for trial in known if trial.run_id == name]
        same = [trial for trial in own if trial.on == on or (fresh is not None and trial.on.key == on.key)]
        if same:
            return same[-1], []
        before = count_before(known, on)
        ledger = before.model_copy(update={"fresh": bool(fresh and before.configurations)})
        number = every[-1].number + 1 if every else 1
        trial = Trial(number, name, on, TrialCounts(hypotheses=hypotheses), ledger)
        await connection.execute(trials.insert(), _columns(trial))
        await seal_row(connection, trials, trials.c.number == number)
        return trial, known

    async def advance(self, run_id: str, counts: TrialCounts) -> None:
        """Note how far a run has come; a run that was not entered is no trial."""
        with losses_of(run_id):
            await self._run_write(lambda connection: advance_trial(connection, run_id, counts))

    async def all(self) -> list[Trial]:
        """Every run in the ledger, in the order in which they began.

        Raises:
            StoreDamaged: a row cannot be read, is not as it was sealed, or is gone.
        """
        return await self._run_read(self._find)

    async def _find(self, connection: AsyncConnection) -> list[Trial]:
        """Every row in order; one of a run under way reaches to the label of its last stored bars."""
        what = f"store {self._url.text}: the row of {{!r}} in its ledger of trials"
        if (gone := (await connection.execute(missing_rows(trials).limit(1))).one_or_none()) is not None:
            raise StoreDamaged(f"{what.format(gone.run_id)} is damaged, it is gone: {MEND}")
        taken = select(func.max(paper_bars.c.label)).where(paper_bars.c.run_id == trials.c.run_id)
        last = func.coalesce(trials.c.last_label, taken.scalar_subquery(), trials.c.first_label)
        query = sealed_rows(trials, last.label("until")).order_by(trials.c.number)
        found = []
        for row in await connection.execute(query):
            require_sealed(trials, row)
            with readable(what.format(row.run_id)):
                found.append(_trial(row))
        return found


async def advance_trial(connection: AsyncConnection, run_id: str, counts: TrialCounts) -> None:
    """Note how far a run has come, inside a transaction of the caller's.

    Raises:
        StoreDamaged: its row is not as it was sealed.
    """
    row = (await connection.execute(newest_trial(run_id))).one_or_none()
    if row is None:
        return
    require_sealed(trials, row)
    own = trials.c.number == row.number
    await connection.execute(update(trials).where(own).values(**counts.payload()))
    await seal_row(connection, trials, own)


def newest_trial(run_id: str) -> Select[Any]:
    """The newest row with a run's id, with its seal; the id of a run that is gone may come again."""
    return sealed_rows(trials).where(trials.c.run_id == run_id).order_by(trials.c.number.desc()).limit(1)


def _columns(trial: Trial) -> dict[str, Any]:
    on = trial.on
    return {
        "number": trial.number,
        "run_id": trial.run_id,
        **{name: value for name, value in vars(on).items() if name != "symbols"},
        "symbols": json.dumps(on.symbols),
        **trial.counts.payload(),
        "ledger": json.dumps(trial.ledger.payload()),
    }


def _trial(row: Row[Any]) -> Trial:
    symbols = json.loads(row.symbols)
    if not isinstance(symbols, list) or not all(isinstance(symbol, str) for symbol in symbols):
        raise ValueError(f"symbols {row.symbols[:80]!r} of {row.run_id!r}")
    on = TriedOn(
        row.config_hash, row.playbooks, row.data, row.timeframe, tuple(symbols),
        int(row.first_label), int(row.until),
    )  # fmt: skip
    counts = TrialCounts(hypotheses=row.hypotheses, candidates=row.candidates, promotions=row.promotions)
    return Trial(row.number, row.run_id, on, counts, TrialLedger.model_validate(json.loads(row.ledger)))
