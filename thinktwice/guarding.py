"""`tt.guard`: checks in front of the orders of any agent, each journalled before it may act on them."""

import asyncio
import threading
import time
import warnings
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from schemas.errors import OrderRefused, StoreError
from schemas.guard import LONGEST_TEXT, Account, GuardSettings, Mode, Order, Verdict
from schemas.reflection import Finding
from schemas.vocabulary import CheckName, Severity
from services.guard.desk import GuardDesk, describe_findings
from services.guard.reading import read_account, read_order, read_settings
from services.policy_checks.findings import status_of
from thinktwice.boundary import trims_errors
from worker.operations.environment import environment

Answer = TypeVar("Answer")
AccountPart = Account | Mapping[str, Any] | None


@trims_errors
def guard(
    limits: "GuardSettings | Mapping[str, Any] | str | Path | None" = None,
    *,
    store: str = "sqlite:///guard.sqlite",
    mode: Mode = "shadow",
    name: str = "guard",
    account: Callable[[], AccountPart] | None = None,
    clock: Callable[[], int] | None = None,
    required: Sequence[str] = (),
) -> "Guard":
    """A guard in front of an agent's orders.

    Args:
        limits: path of a TOML file, a dict of its sections, or None for the defaults.
        store: URL of the store that its journal is written to; it is made where it is missing.
        mode: `shadow` records everything and refuses nothing; `enforce` refuses.
        name: of the guard; processes that name the same share its limits and its journal.
        account: gives the account where a check is given none.
        clock: ns since 1970; None: the clock of the machine.
        required: checks without whose input an order is blocked, as `verdict.not_checked` names them.

    Raises:
        ConfigError: a limit, an address or a name that cannot be.
        StoreError: the store cannot be used.
    """
    settings = read_settings(limits)
    if required:
        asked = settings.limits.model_copy(update={"required": (*settings.limits.required, *required)})
        settings = settings.model_copy(update={"limits": asked})
    return Guard(settings, store, mode, name, account, clock or time.time_ns)


class Guard:
    """A guard of this process; close it, or use it as a context manager. May be called from any thread.

    Attributes:
        settings: in force.
        mode: shadow or enforce.
        errors: what kept a guard in mode `shadow` from its work; it never stops the caller.
    """

    def __init__(
        self, settings: GuardSettings, store: str, mode: Mode, name: str,
        account: Callable[[], AccountPart] | None, clock: Callable[[], int],
    ) -> None:  # fmt: skip
        self.settings, self.mode, self.errors = settings, mode, list[str]()
        self._account, self._clock = account, clock
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="thinktwice-guard", daemon=True)
        self._thread.start()
        opening = GuardDesk.open(
            store, settings, mode=mode, name=name, clock=clock, environment=environment()
        )
        try:
            self._desk = self._run(opening)
        except BaseException:
            self._stop()
            raise

    @property
    def run_id(self) -> str:
        """Of the run in the store that holds the journal of this guard."""
        return self._desk.run_id

    @trims_errors
    def check(
        self,
        order: Order | Mapping[str, Any] | None = None,
        *,
        account: AccountPart = None,
        why: str | None = None,
        **fields: Any,
    ) -> Verdict:
        """The verdict on an order; true where it may be sent. Its row is in the journal by then.

        Args:
            order: a dict or an `Order`; or its fields by name.
            account: equity, cash, positions, orders and the day's result; None: the guard's own, if any.
            why: what the agent says of it; it is kept, and changes no check.
            fields: of the order, in place of those that `order` has.

        Raises:
            DataError: a field that cannot be; names it and what would do.
            OrderRefused: in mode `enforce`, the store cannot take the verdict.
        """
        given, failure = read_order(order, fields), None
        if account is None and self._account is not None:
            try:
                account = self._account()
            except Exception as error:  # noqa: BLE001 - of the caller's own; no order may slip through
                failure = error
        held, text = read_account(account), (why or "")[:LONGEST_TEXT]
        try:
            return self._run(self._desk.check(given, held, why=text, failure=failure))
        except StoreError as error:
            return self._without_store(given, error)

    @trims_errors
    def spend(self, verdict_id: str, order: Order | Mapping[str, Any] | None = None, **fields: Any) -> None:
        """Use a verdict for exactly its order, once; the doors call it right before they send.

        In mode `shadow` what is wrong is journalled and told as a warning.

        Raises:
            OrderRefused: unknown, another order, expired, spent before, no pass, or no store to write it to.
            DataError: a field of the order that cannot be.
        """
        given = read_order(order, fields)
        try:
            self._run(self._desk.spend(verdict_id, given))
        except StoreError as error:
            self._without_store(given, error)

    def orders(self, function: Callable[..., Any] | None = None, **how: Any) -> Callable[..., Any]:
        """Decorate a function that sends orders, plain or async: it is called with those alone that pass.

        Its parameters are the fields of an order; `client_order_id`, left None, gets the verdict's id.

        Args:
            function: to decorate; None where the arguments below are given.
            how: `order`, the parameter that is the order; `to_order`, makes one of the arguments; `names`,
                the parameter of each field that is not called like it; `bars`, gives the bars of a symbol;
                `on_refusal="return"`, returns the reply instead of raising `OrderRefused`.
        """
        from thinktwice.doors import guard_orders

        if function is None:
            return partial(self.orders, **how)
        return guard_orders(self, function, **how)

    def _without_store(self, order: Order, error: StoreError) -> Verdict:
        """In mode `shadow` a verdict that nobody recorded, with a warning; else nothing leaves."""
        if self.mode == "enforce":
            raise OrderRefused(f"nothing may be sent: the guard cannot record it: {error}") from error
        self.errors.append(str(error))
        warnings.warn(f"the guard recorded nothing: {error}", stacklevel=4)
        found = Finding(
            check=CheckName.INVARIANT, code="guard_error", severity=Severity.BLOCKER, message=str(error)
        )
        status, now = status_of([found]), self._clock()
        return Verdict(
            id="unrecorded", order_hash=order.content_hash, status=status.value, findings=(found,),
            reply=describe_findings(status, [found]), at=now, expires_at=now, mode="shadow",
        )  # fmt: skip

    def close(self) -> None:
        """Release the store; a second time does nothing."""
        if self._thread.is_alive():
            self._run(self._desk.close())
            self._stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
