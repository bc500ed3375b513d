"""The trading stepper: a session that is fed one row, one anomaly, one answer, one command at a time.

It is the same for a feed that waits and for one that runs on, for the present and for a recovery from what is
stored: whoever drives it decides where the next input comes from.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from schemas.errors import InvariantViolation
from schemas.playbook import PlaybookDefinition
from schemas.settings import Settings
from services.feeds.port import BarRow, FeedAnomaly, FeedAnomalyKind, series_of
from services.journal.writer import JournalWriter
from services.playbooks.assembly import given_playbooks
from services.policy_loop.evaluation import Evaluation
from trading_core.live.growing_bars import GrowingBars
from worker.bootstrap import assemble
from worker.feeds.doubts import check_doubts
from worker.models import NO_OVERRIDES, Overrides
from worker.runs.trials import GivenTrial, RunTrial
from worker.session import Session, Timing

DRAIN_AFTER = 20  # rows with an evaluation out all the time; then none begins until one row had none


@dataclass(frozen=True)
class BarAxes:
    """What is traded: the axes of every row."""

    symbols: tuple[str, ...]
    timeframe: str
    label: Literal["open", "close"]
    zone: str = "UTC"


class LiveStepper:
    """One paper run.

    Args:
        settings: the resolved configuration.
        market: what is traded.
        journal: writer of the run.
        lock_step: whether rows wait for the policy loop and the slow loop.
        definitions: playbooks; None loads the configured folder or the embedded ones.
        own: what answers its questions, or is put around its parts.
        ask: takes an evaluation of a feed that runs on; returns at once.
        trial: says what was tried on these bars before, and counts what is tried now; None does neither.

    Attributes:
        timing: what took how long.
        rows: rows taken so far.
        draining: whether no evaluation begins: what waits for a row with none out has waited long enough.
            It follows from the rows and the answers between them, so a replay drains at the same rows.
    """

    def __init__(
        self,
        settings: Settings,
        market: BarAxes,
        journal: JournalWriter,
        *,
        lock_step: bool,
        ask: Callable[[Evaluation], None],
        definitions: Sequence[PlaybookDefinition] | None = None,
        own: Overrides = NO_OVERRIDES,
        trial: RunTrial | None = None,
    ) -> None:
        self.settings = settings
        self.market = market
        self.journal = journal
        self.lock_step = lock_step
        self.timing = Timing(compile_s=0.0)
        self.rows = 0
        self.blocked: Mapping[str, str] = {}
        self._ask = ask
        self._definitions = definitions
        self._own = own
        self._trial = trial or GivenTrial()
        self._session: Session | None = None
        self._early: list[FeedAnomaly] = []
        self._busy_rows = 0
        self.draining = False

    @property
    def begun(self) -> bool:
        """Whether the first row has come."""
        return self._session is not None

    @property
    def session(self) -> Session:
        """The session; it begins with the first row.

        Raises:
            InvariantViolation: there was no row yet.
        """
        if self._session is None:
            raise InvariantViolation("a paper run begins with its first row, and there was none yet")
        return self._session

    def resume(self, session: Session, rows: int, blocked: Mapping[str, str]) -> None:
        """Go on with a session that stands behind `rows` rows.

        Raises:
            InvariantViolation: the stepper has begun.
        """
        if self._session is not None:
            raise InvariantViolation("a stepper that has begun cannot resume another session")
        self._session, self.rows, self.blocked = session, rows, dict(blocked)
        session.stops_without_model = session.settings.llm.on_lost == "stop"
        self._trial.follow(session.slow_loop)

    async def take(self, row: BarRow) -> None:
        """Validate one row, and on a feed that waits everything that follows from it.

        Raises:
            DataError: the history before it holds doubtful bars, and `data.on_doubt` refuses them.
        """
        if self._session is None:
            self._session = await self._open(row)
            self._session.stops_without_model = self._session.settings.llm.on_lost == "stop"
            self._session.begin()
        else:
            live = self._session.live
            if live is None:
                raise InvariantViolation("the session of a paper run cannot grow")
            if self.rows == self._session.policy_loop.signals.first_row and not row.history:
                sifted = self._session.anomalies[FeedAnomalyKind.IMPLAUSIBLE] > 0
                check_doubts(self._session.bars, self.settings.data, sifted=sifted)  # history ends here
            live.take(row.label, row.bars, tuple(row.blocked), row.extra)
        self.rows += 1
        self._note_blocked(row.label, row.blocked)
        await self._step(row)
        early, self._early = self._early, []
        for anomaly in early:
            self.note(anomaly)

    async def _step(self, row: BarRow) -> None:
        session = self.session
        self._busy_rows = self._busy_rows + 1 if session.policy_loop.in_flight else 0
        self.draining = self.draining or self._busy_rows >= DRAIN_AFTER
        if row.history:
            session.policy_loop.signals.first_row = self.rows
        while not session.engine.done:
            if self.lock_step:
                await session.step(self.timing, history=row.history)
                continue
            step = session.validate(self.timing)
            for boundary in step.boundaries:
                evaluation = session.policy_loop.open(boundary, history=row.history, draining=self.draining)
                if evaluation is not None:
                    self._ask(evaluation)
        if not self.lock_step and not session.policy_loop.in_flight:
            # Playbooks do not change under an evaluation that is out.
            session.keep_trials()
            self.draining = False

    def note(self, anomaly: FeedAnomaly) -> None:
        """Journal what was wrong with the feed; before the first row it waits for it."""
        if self._session is None:
            self._early.append(anomaly)
            return
        self.write_anomaly(anomaly.payload(), dict(anomaly.measured) or None)

    def write_anomaly(self, payload: dict[str, Any], measured: dict[str, Any] | None = None) -> None:
        """Journal an anomaly, now or when it is played again; a row without bars still blocks its symbols."""
        session = self.session
        session.note_anomaly(payload, measured)
        withheld = payload["anomaly"] == FeedAnomalyKind.WITHHELD
        if withheld and payload["bar_label"] > int(session.bars.times[self.rows - 1]):
            self._note_blocked(payload["bar_label"], {**self.blocked, **payload["detail"]["blocked"]})

    def _note_blocked(self, label: int, now: Mapping[str, str]) -> None:
        """Who may not enter, when that changes."""
        blocked = dict(sorted(now.items()))
        if blocked == self.blocked:
            return
        self.blocked = blocked
        known = int(self.session.bars.close_times[self.rows - 1])
        payload = {"bar_label": label, "blocked": blocked}
        self.journal.append("entries_blocked", ts_event=known, known_at=known, payload=payload)

    async def _open(self, row: BarRow) -> Session:
        market, books = self.market, given_playbooks(self.settings, self._definitions)
        first = series_of(market.symbols, market.timeframe, market.label, [row], market.zone)
        ledger = await self._trial.begin(first, books, grows=True)
        session = assemble(
            self.settings, GrowingBars(first), self.journal, books, self._own,
            market_waits=self.lock_step, ledger=ledger,
        )  # fmt: skip
        self._trial.follow(session.slow_loop)
        return session
