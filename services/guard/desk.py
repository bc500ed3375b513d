"""The guard at work: every verdict is a row of the journal before anybody sees it.

Several processes may share a guard. A row goes to the end of the journal or nowhere: where another process
was first, its rows are folded and the decision is made anew, so that `once` holds among all of them.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, replace
from math import isfinite
from types import ModuleType
from typing import TYPE_CHECKING, Any, Self, TypeVar, get_args

from schemas.canonical import content_hash
from schemas.errors import ConfigError, DataError, OperatorError, OrderRefused, StoreError, nearest
from schemas.guard import Account, BarFacts, GuardSettings, Mode, Order, Verdict, text_of
from schemas.reflection import Finding
from schemas.vocabulary import ReflectionStatus, Severity
from services.guard.ledger import NS, Ledger, Question
from services.guard.limits import OrderContext, check_limits
from services.guard.reading import attempt, read_order
from services.guard.runs import CHECKS, MODE, find_run, requiring
from services.guard.verdicts import Entry, ModelRows, describe_room, make_verdict, note, row_of, spending_row
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.model_calls.language_model import LanguageModel
from services.policy_checks.findings import own_findings, status_of
from services.ports import EventJournal

if TYPE_CHECKING:
    from services.guard.plans import OrderReflection
    from services.store import RunRecord, Store
    from trading_core.bars import BarSeries

OF_BARS = ("staleness", "bar_jump", "price_collar")  # checks of an exit whose bars cannot be read
ASKED_FOR_NS = 3_600 * NS  # a question, and its answer
MOST_TRIES = 50  # rows of other processes that may come between
Answer = TypeVar("Answer")
OwnCritic = Callable[[OrderContext], Any]  # gives findings, or None
ReaderMaker = Callable[[EventJournal], LanguageModel]


def load_plans() -> ModuleType:
    """What holds an order against bars; it loads the engine, which limits alone do not need."""
    from services.guard import plans

    return plans


class GuardDesk:
    """One guard of a store; `open` makes it.

    Attributes:
        run_id: of the run whose journal it writes.
        ledger: what the rows come to.
        settings, mode: in force.
    """

    def __init__(
        self, store: "Store", run_id: str, settings: GuardSettings, mode: Mode, clock: Callable[[], int],
        critics: Sequence[OwnCritic] = (), make_reader: ReaderMaker | None = None,
    ) -> None:  # fmt: skip
        self.run_id, self.settings, self.mode, self.ledger = run_id, settings, mode, Ledger()
        self._store, self._clock, self._lock = store, clock, asyncio.Lock()
        self._critics, self._make_reader, self._calls = tuple(critics), make_reader, ModelRows()
        self._made: OrderReflection | None = None
        self._reader: LanguageModel | None = None
        self._name = ""
        self._learnt = 0  # corrected outcomes that the reflection knows

    @classmethod
    async def open(
        cls,
        address: str,
        settings: GuardSettings,
        *,
        mode: Mode,
        name: str,
        clock: Callable[[], int],
        environment: Mapping[str, str | None],
        critics: Sequence[OwnCritic] = (),
        make_reader: ReaderMaker | None = None,
        create: bool = True,
    ) -> Self:
        """The guard of that name in a store by its URL; processes that name the same share it.

        `settings` are in force from now on. `clock` gives ns since 1970, `environment` is stored beside the
        run, and `make_reader` makes the second reader, whose calls it journals; None: rules alone.

        Raises:
            ConfigError: an address, a mode or the name of a required check that cannot be.
            StoreError: the store cannot be used.
        """
        from services.store import open_store

        if mode not in get_args(Mode):
            raise ConfigError(
                f"mode {mode!r}: give 'shadow' or 'enforce'.{nearest(str(mode), get_args(Mode))}"
            )
        settings = requiring(settings, ())
        store = await open_store(address, create=create)
        try:
            run_id = await find_run(store, settings, name, clock(), environment)
            desk = cls(store, run_id, settings, mode, clock, critics, make_reader)
            await desk._catch_up()
            desk._name = name
            await desk.change(lambda known: known)
        except BaseException:
            await store.close()
            raise
        return desk

    @classmethod
    async def attach(cls, store: "Store", run: "RunRecord", clock: Callable[[], int]) -> Self:
        """A guard that another process opened, under the settings that it was opened with.

        Raises:
            ConfigError: the run is no guard's.
            StoreError: a row of it cannot be read.
        """
        if run.mode != MODE:
            raise ConfigError(f"run {run.run_id} is a {run.mode}, no guard: name one of `thinktwice runs`")
        desk = cls(store, run.run_id, GuardSettings(), "enforce", clock)
        await desk._catch_up()
        desk.settings = GuardSettings.model_validate(desk.ledger.opened.get("settings", {}))
        desk.mode = desk.ledger.opened.get("mode", "enforce")
        return desk

    async def change(self, change: Callable[[GuardSettings], GuardSettings]) -> None:
        """Work by other settings from now on; a row has them where they are not those of the last one."""
        self.settings = change(self.settings)
        self._made = None
        row = {"name": self._name, "mode": self.mode, "settings_hash": self.settings.content_hash}

        def decide(now: int) -> tuple[None, list[Entry]]:
            is_last = all(self.ledger.opened.get(key) == value for key, value in row.items())
            opened = Entry("guard_opened", row | {"settings": self.settings.payload()})
            return None, [] if is_last else [opened]

        await self._commit(decide)

    async def kill(self, on: bool, by: str) -> None:
        """Block every entry, in all processes of this guard, from its next row on; or let them pass again."""
        row = {"on": on, "by": by}
        await self._commit(lambda now: (None, [Entry("guard_killed", row)]))

    async def close(self) -> None:
        """Release the store."""
        await self._store.close()

    async def check(
        self,
        order: Order,
        account: Account | None = None,
        *,
        bars: "BarSeries | None" = None,
        why: str = "",
        failures: Sequence[Exception] = (),
        spend: bool = False,
    ) -> Verdict:
        """The verdict on an order, journalled; `failures` kept inputs of the check from being gathered.

        With `spend` the order is sent where the verdict is true, and the verdict is used in the same write.
        Bars are read beside the loop, so no other order waits for them.

        Raises:
            DataError: the order is worth more than a number holds; and in mode `enforce`, once its verdict is
                a row, an account or bars that cannot be read where the order is no exit.
            StoreError: the row cannot be written; then there is no verdict.
        """
        why = text_of(why)

        problems = [*failures]
        closed, facts = await self._read_bars(order.symbol, bars, problems)
        problem = next(iter(problems), None)

        async def decide(now: int) -> tuple[Verdict, list[Entry]]:
            seen = self._see(order, account, facts, now)
            findings, missing = await self._ask(seen, closed, why, problem)
            verdict, approved = make_verdict(seen, findings, missing, self.mode)
            row = {**row_of(seen, verdict, approved), "why": why}
            calls, self._calls.entries = self._calls.entries, []
            entries = [*calls, Entry("guard_verdict", row, order.symbol)]
            if spend and verdict:
                wrong = None if verdict.status == "pass" else f"is no pass: {verdict.reply}"
                entries.append(spending_row(verdict.id, order, wrong))
            return verdict, entries

        verdict = await self._commit(decide)
        if self.mode == "enforce" and isinstance(problem, OperatorError) and not verdict.reduces:
            raise problem
        return verdict

    async def spend(self, verdict_id: str, order: Order) -> None:
        """Use a verdict for exactly its order; in mode `shadow` what is wrong is journalled and no more.

        Raises:
            OrderRefused: unknown, another order, expired, spent before, or no pass.
            StoreError: the row cannot be written.
        """

        def decide(now: int) -> tuple[str | None, list[Entry]]:
            problem = self.ledger.spending_problem(verdict_id, order.content_hash, now)
            return problem, [spending_row(verdict_id, order, problem)]

        problem = await self._commit(decide)
        if problem is not None and self.mode == "enforce":
            raise OrderRefused(f"verdict {verdict_id!a} {problem}")

    async def ask(self, verdict: Verdict) -> str:
        """The hash of a question to a person: whether exactly this order may be sent, once.

        Raises:
            DataError: the verdict is not one of this guard, or has passed.
        """

        def decide(now: int) -> tuple[str, list[Entry]]:
            checked = self.ledger.orders.get(verdict.id)
            if checked is None or verdict.status == "pass":
                raise DataError(
                    f"verdict {verdict.id!a}: ask for one that this guard gave and that is no pass"
                )
            order_hash, until = checked.verdict.order_hash, now + ASKED_FOR_NS
            question = Question(content_hash([verdict.id, order_hash]), order_hash, verdict.id, until)
            request = question.hash in self.ledger.questions
            return question.hash, [] if request else [
                Entry("guard_asked", asdict(question), checked.order.symbol)
            ]

        return await self._commit(decide)

    async def decide(self, question: str, *, approve: bool, by: str) -> Question:
        """Answer a question, once and in time; `question` may be a unique start of its hash.

        Raises:
            DataError: there is no such question, it was answered before, or it is over.
        """

        def decide(now: int) -> tuple[Question, list[Entry]]:
            found = [
                request for request in self.ledger.questions.values() if request.hash.startswith(question)
            ]
            if len(found) != 1 or not question:
                raise DataError(f"question {question!a}: {len(found)} begin so: `thinktwice guard questions`")
            if found[0].approve is not None:
                raise DataError(f"question {question!a} was answered before, by {found[0].by!a}")
            if now > found[0].expires_at:
                raise DataError(f"question {question!a} is over: check the order again, and ask anew")
            answered = replace(found[0], approve=approve, by=by)
            return answered, [Entry("guard_decided", asdict(answered))]

        return await self._commit(decide)

    async def settle(self, outcomes: Sequence[Mapping[str, Any]]) -> tuple[int, list[str]]:
        """Take in how sent orders ended: how many are new or corrected, and the ids that are unknown.

        Each has `client_order_id` (of the verdict), `r` or `pnl`, and perhaps `closed_at` in ns.

        Raises:
            DataError: an order has neither r nor pnl, or closed before its check.
        """
        await self.read(lambda ledger: ledger.events)  # an id may be in rows that are not folded yet

        def decide(now: int) -> tuple[tuple[int, list[str]], list[Entry]]:
            new, unknown = {}, list[str]()
            for outcome in outcomes:
                if (name := str(outcome.get("client_order_id"))) not in self.ledger.orders:
                    unknown.append(name)
                elif (row := self.ledger.settlement(outcome, now)) != self.ledger.settled.get(name):
                    new[name] = row
            return (len(new), unknown), [
                Entry("guard_settled", row, self.ledger.orders[name].order.symbol)
                for name, row in new.items()
            ]

        return await self._commit(decide)

    async def worth(self, bars: "Mapping[str, BarSeries]") -> dict[str, Any]:
        """What refusals were worth, see `worth_of`, once those that ended on bars by symbol are kept."""
        from services.guard.worth import trade_refused, worth_of

        def decide(now: int) -> tuple[dict[str, Any] | None, list[Entry]]:
            ended, orders = trade_refused(self.ledger, bars, self.settings.execution, now), self.ledger.orders
            return None, [
                Entry("guard_outcome", row, orders[row["verdict_id"]].order.symbol) for row in ended
            ]

        await self._commit(decide)
        return await self.read(worth_of)

    async def read(self, look: Callable[[Ledger], Answer]) -> Answer:
        """What a look at the ledger gives, once the rows of other processes are in it."""
        async with self._lock:
            await self._catch_up()
            return look(self.ledger)

    async def describe_room(
        self, symbol: str, account: Account | None, bars: "BarSeries | None"
    ) -> dict[str, Any]:
        """Directions and the largest size of an order in a symbol now; see `verdicts.describe_room`.

        Raises:
            DataError: a symbol or bars that cannot be.
        """
        read_order(None, {"symbol": symbol, "side": "buy", "notional": 1.0})
        problems, now = list[Exception](), self._clock()
        _, facts = await self._read_bars(symbol, bars, problems)
        if problems:
            raise problems[0]
        return await self.read(
            lambda ledger: describe_room(symbol, account, self.settings, facts, ledger, now)
        )

    async def warm_up(self, bars: "BarSeries") -> None:
        """Compile what reads bars, beside the loop."""
        await asyncio.to_thread(lambda: load_plans().warm_up(self.settings, bars))

    async def _read_bars(
        self, symbol: str, bars: "BarSeries | None", problems: list[Exception]
    ) -> "tuple[BarSeries | None, BarFacts | None]":
        """The closed bars of a symbol and what they say; `problems` gets why there are none."""
        if bars is None:
            return None, None
        now = self._clock()
        read = await asyncio.to_thread(attempt, lambda: load_plans().read_bars(bars, symbol, now), problems)
        return read or (None, None)

    def _see(self, order: Order, account: Account | None, facts: BarFacts | None, now: int) -> OrderContext:
        """What the checks look at.

        Raises:
            DataError: the order is worth more than a number holds.
        """
        seen = OrderContext(order, account, self.settings, facts, self.ledger, now)
        worth = (seen.quantity or 0.0) * (seen.price or 1.0), seen.notional or 0.0, seen.risk or 0.0
        if not all(map(isfinite, worth)):
            raise DataError(
                f"order of {order.symbol!a}: no number holds what it is worth: give a smaller size"
            )
        return seen

    async def _ask(
        self, seen: OrderContext, bars: "BarSeries | None", why: str, failure: Exception | None
    ) -> tuple[list[Finding], list[str]]:
        """Findings, and checks that could not be asked; what goes wrong in it is a finding that blocks."""
        try:
            if seen.reduces:
                unread = "" if failure is None else f"; not read: {str(failure)[:300]!a}"
                missing = [] if seen.account is not None else ["flip"]
                return [note("exit", seen.exit_note + unread)], [*missing, *(OF_BARS if unread else ())]
            if failure is not None:
                raise failure
            findings, missing = check_limits(seen)
            if status_of(findings) is not ReflectionStatus.BLOCK:
                findings += await self._reflect(seen, bars, why, missing)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - one that ends the thread would leave the caller waiting
            text = f"the check itself failed: {type(error).__name__}: {str(error)[:300]!a}"
            return [note("guard_error", text, Severity.BLOCKER)], []
        if lacking := [name for name in dict.fromkeys(missing) if name in seen.limits.required]:
            inputs = "; ".join(f"{name} needs {CHECKS[name]}" for name in lacking)
            text = f"checks that are required could not be asked: {inputs}"
            findings.append(note("check_required", text, Severity.BLOCKER))
        return findings, list(dict.fromkeys(missing))

    async def _reflect(
        self, seen: OrderContext, bars: "BarSeries | None", why: str, missing: list[str]
    ) -> Sequence[Finding]:
        """The fast reflection on the order as a plan, the caller's critics in it; or those alone."""
        if bars is None or seen.order.stop is None:
            missing += ["coherence", "memory", "expectation"]
            return own_findings(self._critics, seen)
        if self._made is None or self._learnt != self.ledger.corrections:
            if self._reader is None and self._make_reader is not None:
                self._reader = self._make_reader(self._calls)
            self._made = load_plans().OrderReflection(self.settings, self._critics, self._reader)
            self._learnt = self.ledger.corrections
        found, lacking = await self._made.reflect(seen, bars, why)
        missing += lacking
        return found

    async def _commit(
        self,
        decide: Callable[[int], Awaitable[tuple[Answer, list[Entry]]]]
        | Callable[[int], tuple[Answer, list[Entry]]],
    ) -> Answer:
        """What `decide` comes to, once its rows are the last of the journal."""
        async with self._lock:
            for _ in range(MOST_TRIES):
                now = self._clock()
                try:
                    decided = decide(now)
                    answer, entries = decided if isinstance(decided, tuple) else await decided
                except DataError:  # what is asked about may be in rows that are not folded yet
                    if not await self._catch_up():
                        raise
                    continue
                writer = JournalWriter(MemorySink(), after=(self.ledger.events, self.ledger.head_hash))
                rows = [
                    writer.append(
                        entry.kind, ts_event=now, known_at=now, symbol=entry.symbol,
                        payload=entry.payload, telemetry=entry.telemetry,
                    )
                    for entry in entries
                ]  # fmt: skip
                try:
                    await self._store.journal.append(self.run_id, rows, first=True)
                except StoreError:
                    if not await self._catch_up():
                        raise
                    continue
                for row in rows:
                    self.ledger.fold(row)
                return answer
        raise StoreError(
            f"run {self.run_id!r}: other processes write all the time: try again", retryable=True
        )

    async def _catch_up(self) -> bool:
        """Fold what other processes have written; whether there was anything."""
        before = self.ledger.events
        async for row in self._store.journal.rows(self.run_id, after=before - 1):
            self.ledger.fold(row)
        return self.ledger.events > before
