"""The guard at work: every verdict is a row of the journal before anybody sees it.

Several processes may share a guard. A row goes to the end of the journal or nowhere: where another process
was first, its rows are folded and the decision is made anew, so that `once` holds among all of them.
"""

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Self, TypeVar, get_args

from schemas.canonical import content_hash
from schemas.errors import ConfigError, OrderRefused, StoreError, ThinktwiceError, nearest
from schemas.guard import Account, GuardSettings, Mode, Order, Verdict
from schemas.reflection import Finding
from schemas.settings import Settings
from schemas.vocabulary import CheckName, ReflectionStatus, Severity
from services.guard.ledger import NS, Ledger
from services.guard.limits import CRITICS, OrderContext, check_limits
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.policy_checks.findings import OP_WORDS, status_of

if TYPE_CHECKING:
    from services.store import Store

MODE = "guard"
MOST_TRIES = 50  # rows of other processes that may come between
Answer = TypeVar("Answer")
Entry = tuple[str, str | None, dict[str, Any]]  # kind, symbol, payload
Decide = Callable[[int], tuple[Answer, list[Entry]]]


class GuardDesk:
    """One guard of a store; `open` makes it.

    Attributes:
        run_id: of the run whose journal it writes.
        ledger: what the rows come to.
        settings, mode: in force.
    """

    def __init__(self, store: "Store", run_id: str, settings: GuardSettings, mode: Mode, clock: Any) -> None:
        self.run_id, self.settings, self.mode, self.ledger = run_id, settings, mode, Ledger()
        self._store, self._clock, self._lock = store, clock, asyncio.Lock()

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
    ) -> Self:
        """The guard of that name in a store, which is made where it is missing.

        Args:
            address: URL of the store.
            settings: in force from now on; journalled where they are others than before.
            mode: shadow or enforce.
            name: of the guard; processes that name the same share it.
            clock: ns since 1970.
            environment: packages and platform, stored beside the run.

        Raises:
            ConfigError: an address, a mode or the name of a required check that cannot be.
            StoreError: the store cannot be used.
        """
        from services.store import open_store

        if mode not in (modes := get_args(Mode)):
            raise ConfigError(f"mode {mode!r}: give 'shadow' or 'enforce'.{nearest(str(mode), modes)}")
        unknown = sorted(set(settings.limits.required) - set(CRITICS))
        if unknown:
            guess = nearest(unknown[0], CRITICS) or f" There are {', '.join(CRITICS)}."
            raise ConfigError(f"required {unknown[0]!r} is no check.{guess}")
        store = await open_store(address, create=True)
        try:
            run_id = await _find_run(store, settings, name, clock(), environment)
            desk = cls(store, run_id, settings, mode, clock)
            await desk._catch_up()
            await desk._append(lambda now: (None, desk._opening(name)))
        except BaseException:
            await store.close()
            raise
        return desk

    async def close(self) -> None:
        """Release the store."""
        await self._store.close()

    async def check(
        self,
        order: Order,
        account: Account | None = None,
        *,
        why: str = "",
        failure: Exception | None = None,
    ) -> Verdict:
        """The verdict on an order, journalled.

        Args:
            order: as it would be sent.
            account: None: not known.
            why: what the agent says of it; kept, and read by no check.
            failure: that kept the input of the check from being gathered.

        Raises:
            StoreError: the row cannot be written; then there is no verdict.
        """

        def decide(now: int) -> tuple[Verdict, list[Entry]]:
            seen = OrderContext(order, account, self.settings, None, self.ledger, now)
            findings, missing = self._ask(seen, failure)
            approved = None
            if status_of(findings) is not ReflectionStatus.PASS:
                approved = self.ledger.approval_of(order.content_hash, now)
            verdict = self._verdict(seen, findings, missing, approved)
            row = {
                "verdict_id": verdict.id, "verdict": verdict.payload(), "order": order.payload(), "why": why,
                "account": account and account.payload(), "facts": seen.facts and asdict(seen.facts),
                "position": seen.position, "quantity": seen.quantity, "notional": seen.notional,
                "risk": seen.risk, "approved": approved,
            }  # fmt: skip
            return verdict, [("guard_verdict", order.symbol, row)]

        return await self._append(decide)

    async def spend(self, verdict_id: str, order: Order) -> None:
        """Use a verdict for exactly its order; in shadow what is wrong is journalled and no more.

        Raises:
            OrderRefused: unknown, another order, expired, spent before, or no pass.
            StoreError: the row cannot be written.
        """

        def decide(now: int) -> tuple[str | None, list[Entry]]:
            problem = self._spending_problem(verdict_id, order, now)
            row = {"verdict_id": verdict_id, "order_hash": order.content_hash, "problem": problem}
            return problem, [("guard_spent", order.symbol, row)]

        problem = await self._append(decide)
        if problem is not None and self.mode == "enforce":
            raise OrderRefused(f"verdict {verdict_id!r} {problem}")

    def _spending_problem(self, verdict_id: str, order: Order, now: int) -> str | None:
        checked = self.ledger.orders.get(verdict_id)
        if checked is None:
            return "is unknown to this guard: check the order first"
        if checked.verdict.order_hash != order.content_hash:
            return "is of another order: check the order as it is now"
        if verdict_id in self.ledger.spent:
            return "was spent before: check the order again"
        if now > checked.verdict.expires_at:
            return "has expired: check the order again"
        return None if checked.verdict.status == "pass" else f"is no pass: {checked.verdict.reply}"

    def _ask(self, seen: OrderContext, failure: Exception | None) -> tuple[list[Finding], list[str]]:
        """Findings and checks that could not be asked; what goes wrong in it is a finding that blocks."""
        try:
            if failure is not None:
                raise failure
            if seen.reduces:
                text = "the order only lowers the exposure of its symbol: nothing else is asked"
                return [_note("exit", text)], []
            findings, missing = check_limits(seen)
            lacking = [name for name in missing if name in seen.limits.required]
        except ThinktwiceError as error:
            return [_error(str(error))], []
        except Exception as error:  # noqa: BLE001 - a part of the caller's; no order may slip through
            return [_error(f"{type(error).__name__}: {error}")], []
        if lacking:
            text = f"checks that are required could not be asked: {', '.join(lacking)}: give their input"
            findings.append(_note("check_required", text, Severity.BLOCKER))
        return findings, missing

    def _verdict(
        self, seen: OrderContext, findings: list[Finding], missing: list[str], approved: str | None
    ) -> Verdict:
        status = status_of(findings)
        if approved is not None:
            by = self.ledger.questions[approved].by
            findings = [*findings, _note("approved", f"approved by {by!r}, once")]
            status = ReflectionStatus.PASS
        order_hash = seen.order.content_hash
        text = f"{self.ledger.head_hash} {order_hash} {seen.now}"
        return Verdict(
            id=f"tt{hashlib.sha256(text.encode()).hexdigest()[:24]}",
            order_hash=order_hash,
            status=status.value,
            findings=tuple(findings),
            reply=describe_findings(status, findings),
            not_checked=tuple(missing),
            reduces=seen.reduces,
            at=seen.now,
            expires_at=seen.now + int(self.settings.limits.expires_s * NS),
            mode=self.mode,
        )

    def _opening(self, name: str) -> list[Entry]:
        """The row of a guard that works by other settings than the one before; none where it does not."""
        row = {"name": name, "mode": self.mode, "settings": self.settings.payload()}
        row |= {"settings_hash": content_hash(row)}
        return [] if row["settings_hash"] == self.ledger.settings_hash else [("guard_opened", None, row)]

    async def _append(self, decide: Decide[Answer]) -> Answer:
        """What `decide` comes to, once its rows are the last of the journal."""
        async with self._lock:
            for _ in range(MOST_TRIES):
                now = self._clock()
                answer, entries = decide(now)
                writer = JournalWriter(MemorySink(), after=(self.ledger.events, self.ledger.head_hash))
                rows = [
                    writer.append(kind, ts_event=now, known_at=now, symbol=symbol, payload=payload)
                    for kind, symbol, payload in entries
                ]
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


def describe_findings(status: ReflectionStatus, findings: Sequence[Finding]) -> str:
    """What a model is told: each finding that counts with the value that would pass."""
    if status is ReflectionStatus.PASS:
        return "pass"
    lines = []
    for found in findings:
        if found.severity in (Severity.MAJOR, Severity.BLOCKER):
            remedy, told = found.remedy, found.message
            if remedy is not None:
                told += f" ({remedy.field} {OP_WORDS[remedy.op]} {remedy.value!r} would pass this check)"
            lines.append(f"{found.code}: {told}")
    return f"{status.value}: {'; '.join(lines)}"


def _note(code: str, message: str, severity: Severity = Severity.INFO) -> Finding:
    return Finding(check=CheckName.INVARIANT, code=code, severity=severity, message=message)


def _error(what: str) -> Finding:
    return _note("guard_error", f"the check itself failed: {ascii(what)[:500]}", Severity.BLOCKER)


async def _find_run(
    store: "Store", settings: GuardSettings, name: str, now: int, environment: Mapping[str, str | None]
) -> str:
    """The oldest open run of this guard; where two processes make one at once, both take the older."""
    from services.store import NewRun

    async def oldest() -> str | None:
        return next(
            (run.run_id for run in await store.runs.all()
             if (run.mode, run.name, run.status) == (MODE, name, "running")), None,
        )  # fmt: skip

    if (found := await oldest()) is None:
        tree = Settings(
            envelope=settings.envelope, reflection=settings.reflection, execution=settings.execution,
            memory=settings.memory, llm=settings.llm,
        )  # fmt: skip
        new = NewRun(name, now, MODE, tree.config_hash, tree.payload(), {}, dict(environment))
        made = await store.runs.create(new)
        if (found := await oldest()) != made.run_id:
            await store.runs.close(made.run_id, "interrupted")
    return (await store.runs.find(found or "")).run_id
