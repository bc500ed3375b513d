"""Which calls of a broker's tools go on: orders that pass the guard, and tools that read or are named."""

import asyncio
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schemas.errors import DataError
from services.evidence.tools import quote_value
from services.guard.desk import GuardDesk
from services.guard.reading import attempt, drop_mark, read_held, read_order
from services.model_calls.quoting import visible

if TYPE_CHECKING:
    from trading_core.bars import BarSeries

LOG = logging.getLogger("thinktwice.guard")
ID = "client_order_id"
MARK = "reduce_only"
EXACT = {"quantity", "notional", "price", "stop", "target", "conviction", "horizon_bars", MARK}


class OrderGate:
    """Holds calls back, by the settings of a guard.

    Args:
        desk: the guard.
        account: a JSON file that has the account at each order; None: it is not known.
        bars: a file or folder that has the bars of a symbol at each order; None: limits alone are checked.
        tz: zone of its times that carry none.
    """

    def __init__(
        self, desk: GuardDesk, account: Path | None = None, bars: Path | None = None, tz: str | None = None
    ) -> None:
        self._desk, self._settings, self._account, self._bars = desk, desk.settings.proxy, account, bars
        self._reading: dict[str, bool] = {}
        self._tz = tz

    def learn(self, tools: Any) -> None:
        """Take in a list of tools; one that did not say once that it only reads, reads no more."""
        for tool in tools if isinstance(tools, list) else ():
            if isinstance(tool, dict) and isinstance(tool.get("name"), str):
                hints = tool.get("annotations")
                reads = isinstance(hints, dict) and hints.get("readOnlyHint") is True
                self._reading[tool["name"]] = reads and self._reading.get(tool["name"], True)

    async def hold(self, tool: str, arguments: dict[str, Any]) -> str | None:
        """Why a call is held back; None: it goes on, with the verdict's id among the arguments of an order.

        In mode `shadow` every call goes on, and the log has the reason.
        """
        if tool in self._settings.orders:
            reason = await self._check_order(tool, arguments)
        elif tool in self._settings.unchecked or self._reading.get(tool, False):
            return None
        else:
            reason = (
                f"tool {quote_value(tool)} is held back: no list of tools says that it only reads; name the "
                "fields of its orders in [proxy.orders.TOOL] of the guard's file, or it in proxy.unchecked"
            )
        if reason is None or self._desk.mode == "enforce":
            return reason
        LOG.warning("would_be_held_back", extra={"tool": quote_value(tool), "reason": reason})
        return None

    async def _check_order(self, tool: str, arguments: dict[str, Any]) -> str | None:
        names = self._settings.orders[tool]
        if unknown := sorted(arguments.keys() - {*names.values(), *self._settings.free}):
            return f"argument {quote_value(unknown[0])} is not known: name it in proxy.orders or proxy.free"
        given = {
            field: name[1:] if name.startswith("=") else arguments.get(name)
            for field, name in names.items() if field != ID
        }  # fmt: skip
        fields = {field: value for field, value in given.items() if value is not None}
        why = str(fields.pop("why", ""))
        try:
            for field in fields.keys() & EXACT:
                fields[field] = _read_exact(fields[field], names[field], bool if field == MARK else float)
            order = drop_mark(read_order(fields, {}))
            failures = list[Exception]()
            account = read_held(self._read_account, order.symbol, failures)
            bars = await asyncio.to_thread(attempt, self._read_bars, failures)
            verdict = await self._desk.check(
                order, account, bars=bars, why=why, failures=failures, spend=True
            )
            if not verdict:
                return visible(verdict.reply)
        except Exception as error:  # noqa: BLE001 - no order may slip through, and no fault may end the proxy
            return f"the order is held back: {visible(str(error))}"
        for field in fields.keys() & EXACT:  # another program may read a text otherwise than it was read
            if not names[field].startswith("="):
                text = isinstance(arguments[names[field]], str)
                arguments[names[field]] = json.dumps(fields[field]) if text else fields[field]
        if ID in names:
            arguments[names[ID]] = verdict.id
        return None

    async def warm_up(self, make_ready: Callable[[], None]) -> None:
        """Make ready what reads bars, beside the loop.

        Args:
            make_ready: the engine; where no image is for here, it takes up to a minute.
        """
        bars = await asyncio.to_thread(attempt, self._read_bars, [])
        if bars is not None:
            await asyncio.to_thread(make_ready)
            await self._desk.warm_up(bars)

    def _read_account(self) -> Any:
        return None if self._account is None else json.loads(self._account.read_text("utf-8"))

    def _read_bars(self) -> "BarSeries | None":
        if self._bars is None:
            return None
        from worker.feeds.files.files import load_bar_file
        from worker.feeds.files.symbol_rows import Selection

        return load_bar_file(self._bars, Selection(tz=self._tz))


def _read_exact(given: Any, argument: str, kind: type[float] | type[bool]) -> Any:
    """A number or a truth value, or the one that a text has as JSON has it.

    Raises:
        DataError: it is none; names the argument.
    """
    try:
        found = json.loads(given) if isinstance(given, str) else given
    except ValueError:
        found = None
    if isinstance(found, bool) is not (kind is bool) or not isinstance(found, int | float):
        what = "neither true nor false" if kind is bool else "no number"
        raise DataError(
            f"argument {quote_value(argument)}: {quote_value(given)} is {what}: give one as JSON has it"
        )
    return found
