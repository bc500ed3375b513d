"""`tt.guard`: checks in front of the orders of any agent, each journalled before it may act on them."""

import asyncio
import os
import threading
import time
import warnings
from collections.abc import Callable, Coroutine, Mapping, Sequence
from decimal import Decimal
from functools import partial
from numbers import Integral, Real
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from schemas.canonical import datetime_to_ns, text_to_ns
from schemas.errors import ConfigError, DataError, OperatorError, OrderRefused, StoreError
from schemas.guard import Account, GuardSettings, Mode, Order, Verdict
from services.context import RunContext
from services.guard.desk import GuardDesk, OwnCritic, ReaderMaker
from services.guard.ledger import Ledger
from services.guard.reading import attempt, read_account, read_held, read_order, read_settings
from services.guard.runs import requiring, run_settings
from services.guard.verdicts import make_unrecorded
from thinktwice.boundary import trims_errors
from worker.operations.environment import environment

if TYPE_CHECKING:
    import pandas as pd

    from trading_core.bars import BarSeries

Answer = TypeVar("Answer")
AccountPart = Account | Mapping[str, Any] | None


@trims_errors
def guard(
    limits: GuardSettings | Mapping[str, Any] | str | Path | None = None,
    *,
    store: str = "sqlite:///guard.sqlite",
    mode: Mode = "shadow",
    name: str = "guard",
    account: Callable[[], AccountPart] | None = None,
    critics: Sequence[OwnCritic] = (),
    model: Any = None,
    clock: Callable[[], int] | None = None,
    required: Sequence[str] = (),
    tz: str | None = None,
) -> "Guard":
    """A guard in front of an agent's orders.

    Args:
        limits: path of a TOML file, a dict of its sections, or None for the defaults.
        store: URL of the store that its journal is written to; it is made where it is missing.
        mode: `shadow` records everything and refuses nothing; `enforce` refuses.
        name: of the guard; processes that name the same share its limits and its journal.
        account: gives the account where a check is given none.
        critics: look at each order that breaks no guardrail, with its account and what its bars say; return
            findings (`tt.finding`), or None.
        model: the second reader, as `backtest` takes one; None: the one of the settings, where they have
            `reflection.mode` "full".
        clock: ns since 1970; None: the clock of the machine.
        required: checks without whose input an order is blocked, as `verdict.not_checked` names them.
        tz: zone of times of bars that carry none.

    Raises:
        ConfigError: a limit, an address or a name that cannot be.
        StoreError: the store cannot be used.
    """
    settings, reader = _second_reader(read_settings(limits), model)
    clock = clock or time.time_ns
    return Guard(settings, store, mode, name, account, tuple(critics), reader, clock, tz, required)


class Guard:
    """A guard of this process; close it, or use it as a context manager. May be called from any thread.

    Attributes:
        mode: shadow or enforce.
        errors: what kept a guard in mode `shadow` from its work; it never stops the caller.
    """

    def __init__(
        self, settings: GuardSettings, store: str, mode: Mode, name: str,
        account: Callable[[], AccountPart] | None, critics: Sequence[OwnCritic], reader: ReaderMaker | None,
        clock: Callable[[], int], tz: str | None, required: Sequence[str],
    ) -> None:  # fmt: skip
        self.mode, self.errors, self._always = mode, list[str](), settings.limits.required
        self._account, self._clock, self._tz = account, clock, tz
        settings = requiring(settings, required)
        self._read: dict[tuple[str, bytes], BarSeries] = {}
        self._shown: dict[str, BarSeries] = {}  # the last of a symbol
        self._loop, self._pid = asyncio.new_event_loop(), os.getpid()
        self._thread = threading.Thread(target=self._loop.run_forever, name="thinktwice-guard", daemon=True)
        self._thread.start()
        opening = GuardDesk.open(
            store, settings, mode=mode, name=name, clock=clock, environment=environment(),
            critics=critics, make_reader=reader,
        )  # fmt: skip
        try:
            self._desk = self._run(opening)
        except BaseException:
            self._stop()
            raise

    @property
    def run_id(self) -> str:
        """Of the run in the store that holds the journal of this guard."""
        return self._desk.run_id

    @property
    def settings(self) -> GuardSettings:
        """In force."""
        return self._desk.settings

    @property
    def required(self) -> tuple[str, ...]:
        """Checks without whose input an entry is blocked; assign some beside those of the limits.

        Raises:
            ConfigError: there is no such check.
        """
        return self.settings.limits.required

    @required.setter
    def required(self, names: Sequence[str]) -> None:
        self._run(self._desk.change(lambda known: requiring(known, names, self._always)))

    @trims_errors
    def check(
        self,
        order: Order | Mapping[str, Any] | None = None,
        *,
        bars: "pd.DataFrame | BarSeries | Callable[[str], Any] | None" = None,
        account: AccountPart = None,
        why: str | None = None,
        **fields: Any,
    ) -> Verdict:
        """The verdict on an order; true where it may be sent. Its row is in the journal by then.

        Args:
            order: a dict or an `Order`; or its fields by name.
            bars: of its symbol up to now, as `backtest` takes them, or what gives those of a symbol; None:
                limits alone are checked.
            account: equity, cash, positions, orders and the day's result; None: the guard's own, if any.
            why: what the agent says of it; it is kept, and no limit reads it.
            fields: of the order, in place of those that `order` has.

        Raises:
            DataError: a field of the order that cannot be, and in mode `enforce` an account or bars where the
                order is no exit; names it and what would do.
            ConfigError: the guard was closed.
            OrderRefused: in mode `enforce`, the store cannot take the verdict.
        """
        given, failures = read_order(order, fields), list[Exception]()
        held = read_held(self._account if account is None else account, given.symbol, failures)
        series = attempt(lambda: self._bars_of(bars, given.symbol), failures)
        text = "" if why is None else attempt(lambda: str(why), failures) or ""
        if series is not None:
            self._shown[given.symbol] = series
        found = self._record(self._desk.check(given, held, bars=series, why=text, failures=failures))
        if isinstance(found, Verdict):
            return found
        return make_unrecorded(given, str(found), time.time_ns())

    @trims_errors
    def spend(self, verdict_id: str, order: Order | Mapping[str, Any] | None = None, **fields: Any) -> None:
        """Use a verdict for exactly its order, once; the doors call it right before they send.

        In mode `shadow` what is wrong is journalled, and nothing is raised.

        Raises:
            OrderRefused: unknown, another order, expired, spent before, no pass, or no store to write it to.
            DataError: a field of the order that cannot be.
        """
        self._record(self._desk.spend(verdict_id, read_order(order, fields)))

    @trims_errors
    def last_unspent(self, order: Order | Mapping[str, Any]) -> Verdict | None:
        """The last verdict, of any process, by which exactly this order may be sent now; it has no findings.

        A door that is asked twice about an order, before a person approves it and after, spends this one.

        Raises:
            DataError: a field of the order that cannot be.
        """
        name, clock = read_order(order, {}).content_hash, self._clock
        return self._run(self._desk.read(lambda ledger: ledger.last_unspent(name, clock())))

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

    @trims_errors
    def ask(self, verdict: Verdict) -> str:
        """The hash of a question to a person about an order that did not pass.

        It is for `decide`, or for the command `thinktwice guard approve`; once approved, a check of exactly
        this order passes, once.

        Raises:
            DataError: the verdict has passed, or is not one of this guard.
        """
        return self._run(self._desk.ask(verdict))

    @trims_errors
    def decide(self, question: str, *, approve: bool, by: str) -> None:
        """Answer a question, once and in time; `by` is the name of the person.

        Raises:
            DataError: there is no such question, it was answered before, or it is over.
        """
        self._run(self._desk.decide(question, approve=approve, by=by))

    @trims_errors
    def allowed(
        self, symbol: str, account: AccountPart = None, bars: "pd.DataFrame | BarSeries | None" = None
    ) -> dict[str, Any]:
        """What an order in a symbol may be now, for the prompt, before a model thinks.

        `directions`, `max_notional` (None: no limit is known), `max_quantity` (with bars) and `reasons`, why
        it is not more. A stop may lower it further, see `risk_over_cap`.
        """
        if account is None and self._account is not None:
            account = self._account()
        series = self._bars_of(bars, symbol)
        return self._run(self._desk.describe_room(symbol, read_account(account), series))

    @trims_errors
    def settle(self, trades: "pd.DataFrame | Sequence[Mapping[str, Any]]") -> int:
        """Take in how sent orders ended; the number of those that are new or corrected.

        Trades of orders that this guard never checked are left out, with a warning.

        Args:
            trades: one an order, with `client_order_id` (the verdict's id), `r` or `pnl` in quote currency,
                and `closed_at`, a time with its zone or ns; without one it closed now.

        Raises:
            DataError: an order has neither r nor pnl, or closed before its check.
        """
        rows: Any = trades.to_dict("records") if hasattr(trades, "to_dict") else trades
        taken, unknown = self._run(self._desk.settle([_outcome(row) for row in rows]))
        if unknown:
            text = f"{len(unknown)} trades left out, the first {unknown[0]!a}: no order was checked under it"
            warnings.warn(f"{text}: give the verdict's id as client_order_id", stacklevel=3)
        return taken

    @trims_errors
    def worth(
        self, bars: "pd.DataFrame | BarSeries | Mapping[str, pd.DataFrame | BarSeries] | None" = None
    ) -> dict[str, Any]:
        """What refusals were worth: `answer` is helped, hurt or unknown.

        `worth_r` is the mean R of all orders of the same time less that of refused ones, between `lower` and
        `upper` (95 %); `refused` and `passed` orders counted, `orders_needed` more show this worth, `finds_r`
        is the worth that so many find four times of five, and `not_counted` says why others did not. Refused
        orders that nobody sent are traded on paper; their outcomes are kept.

        Args:
            bars: that came since, also by symbol; None: the last that a check of the symbol was given.

        Raises:
            DataError: bars that cannot be.
        """
        refused = self._run(self._desk.read(_refused_symbols))
        if not isinstance(bars, Mapping | None):
            read = self._bars_of(bars, refused[0]) if refused else None
            if read is not None and read is not bars and read.symbols == (refused[0],) != tuple(refused):
                names = ", ".join(refused)
                raise DataError(f"bars: refused orders are of {names}: give a dict of bars by symbol")
            bars = {} if read is None else dict.fromkeys(read.symbols, read)
        given = {symbol: self._bars_of(part, symbol) for symbol, part in (bars or {}).items()}
        known = {**self._shown, **given}.items()
        series = {symbol: part for symbol, part in known if part is not None and symbol in part.symbols}
        return self._run(self._desk.worth(series))

    def trades(self) -> "pd.DataFrame":
        """Orders that have an outcome, settled ones as `sent` and refused ones on paper as `shadow`.

        `tt.gate` reads it: `playbook` is the strategy; regimes are those of the bars at the check.
        """
        import pandas as pd

        rows = self._run(self._desk.read(lambda ledger: list(ledger.outcome_rows())))
        frame = pd.DataFrame(rows, columns=COLUMNS)
        for name in ("entry_time", "exit_time"):
            frame[name] = pd.to_datetime(frame[name], utc=True)
        return frame

    def _bars_of(self, given: Any, symbol: str) -> "BarSeries | None":
        """Bars that a script hands over; a frame that was read before is not read again."""
        given = given(symbol) if callable(given) else given
        if given is None:
            return None
        import pandas as pd

        from thinktwice.inputs import bars_of, settings_of
        from trading_core.bars import BarSeries
        from worker.feeds.files.names import role_of
        from worker.runs.readiness import ready_once

        ready_once()  # of its image: to compile it while an order waits takes half a minute
        if isinstance(given, BarSeries):
            return given
        if not hasattr(given, "columns"):
            raise DataError(f"bars {type(given).__name__}: give a DataFrame or a BarSeries")

        hashes = pd.util.hash_pandas_object(given).to_numpy().tobytes()
        key = f"{symbol} {list(given.columns)}", hashes
        if (known := self._read.get(key)) is not None:
            return known
        named = any(role_of(str(name)) == "symbol" for name in given.columns)
        payload = {"data__symbols": None if named else [symbol], "runtime__tz": self._tz}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is odd about bars is a finding here
            found = bars_of(given, settings_of(None, payload, {}))
        if len(self._read) >= MOST_FRAMES:
            self._read.clear()
        self._read[key] = found
        return found

    def _record(self, work: Coroutine[Any, Any, Answer]) -> Answer | Exception:
        """What the desk says; in mode `shadow` a failure of its own is warned of and handed back."""
        try:
            return self._run(work)
        except (OperatorError, OrderRefused):
            raise
        except Exception as error:
            if self.mode == "enforce":
                raise OrderRefused(f"nothing may be sent: the guard cannot record it: {error}") from error
            self.errors.append(str(error))
            warnings.warn(f"the guard recorded nothing: {error}", stacklevel=4)
            return error

    def close(self) -> None:
        """Release the store; a second time does nothing."""
        if self._thread.is_alive() and os.getpid() == self._pid:
            self._run(self._desk.close())
            self._stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        problem: Exception | None = None
        if self._loop.is_closed():
            problem = ConfigError("the guard was closed: open another")
        elif os.getpid() != self._pid:
            problem = StoreError("the guard was opened in another process: open one in each")
        elif threading.current_thread() is self._thread:
            problem = StoreError("the guard is at work on another order: a critic asks it nothing")
        if problem is not None:
            work.close()
            raise problem
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


MOST_FRAMES = 64
COLUMNS = [
    "order", "playbook", "symbol", "direction", "regime", "timeframe", "entry_time", "exit_time", "r",
    "outcome", "status",
]  # fmt: skip


def _refused_symbols(ledger: Ledger) -> list[str]:
    return sorted({checked.order.symbol for checked in ledger.orders.values() if not checked.verdict})


def _outcome(row: Mapping[str, Any]) -> dict[str, Any]:
    """A settled trade with its time in ns; a missing number of a frame is None."""
    if not isinstance(row, Mapping):
        raise DataError(f"trade {row!a}: give a dict with client_order_id, r or pnl, and closed_at")
    found = {str(name): _plain(value) for name, value in row.items()}
    closed = found.get("closed_at")
    closed = closed.to_pydatetime() if closed is not None and hasattr(closed, "to_pydatetime") else closed
    try:
        at = text_to_ns(closed) if isinstance(closed, str) else closed
        at = at if at is None or isinstance(at, int) else datetime_to_ns(at)
    except (ValueError, AttributeError) as error:
        raise DataError(f"closed_at {closed!a}: {error}") from error
    return {
        **{name: value for name, value in found.items() if name != "closed_at"},
        **({"closed_at": at} if at else {}),
    }


def _plain(value: Any) -> Any:
    """A number of any kind as one of Python's; None for one that is missing."""
    if isinstance(value, Decimal | Real):
        return None if value != value else int(value) if isinstance(value, Integral) else float(value)
    return None if value != value else value


def _second_reader(settings: GuardSettings, model: Any) -> tuple[GuardSettings, ReaderMaker | None]:
    """The settings with a model of the caller's own in them, and what opens the second reader they ask."""
    if model is not None:
        from thinktwice.parts import own_model, settings_of_model

        answering = own_model(model)
        word = settings_of_model(model, answering)["llm__model"]
        llm = settings.llm.model_copy(update={"model": word, "structured_output": answering is None})
        full = settings.reflection.model_copy(update={"mode": "full"})
        settings = settings.model_copy(update={"llm": llm, "reflection": full})
    if settings.reflection.mode == "off":
        raise ConfigError("reflection.mode 'off': a guard reflects: give 'deterministic' or 'full'")
    if settings.reflection.mode != "full":
        return settings, None

    def open_reader(journal: Any) -> Any:
        from trading_core.clock import SimulatedClock
        from trading_core.tick_guard import TickGuard
        from worker.models import Replies, assemble_models, one_model

        tree = run_settings(settings)
        given = one_model(tree, answering) if model is not None and answering is not None else None
        context = RunContext(tree, SimulatedClock(), journal, TickGuard())
        return assemble_models(context, os.environ, Replies(given)).accounted.fast

    if model is None:
        from worker.models import check_models

        check_models(run_settings(settings), os.environ)
    return settings, open_reader
