"""What an account holds, and what trading and models cost."""

from services.evidence import tool_arguments, tool_results
from services.evidence.tools import page_of
from services.evidence_tools.run_view import RunView, iso, row_of
from services.journal.index import Event

CALL = "model_call"


def account(view: RunView, arguments: tool_arguments.AccountArguments) -> tool_results.AccountResult:
    """Open positions by symbol, with the policy and the levels that hold them."""
    opened = sorted(view.open_entries.items(), key=lambda item: str(item[0]))
    page, cursor = page_of(opened, arguments)
    positions = tuple(_position(view, str(symbol), event) for symbol, event in page)
    return tool_results.AccountResult(
        **view.cite((position.row for position in positions), cursor),
        positions=positions,
    )


def _position(view: RunView, symbol: str, event: Event) -> tool_results.PositionSeen:
    fill = event.payload
    newest = view.newest_snapshots.get(symbol)
    seen = None if newest is None else newest.payload["snapshot"]["position"]
    held = seen if seen is not None and seen["policy_id"] == fill["policy_id"] else {}
    return tool_results.PositionSeen(
        symbol=symbol,
        direction=fill["direction"],
        entered=iso(fill["bar_label"]),
        entry_price=fill["price"],
        quantity=fill["quantity"],
        playbook_id=fill["playbook_id"],
        policy_id=fill["policy_id"],
        stop=held.get("stop"),
        target=held.get("target"),
        fill_id=fill["fill_id"],
        row=row_of(event),
    )


def costs(view: RunView, arguments: tool_arguments.CostArguments) -> tool_results.CostResult:
    """Costs of the resolved trades, and of the calls of models by seat."""
    trades = [known.episode for known in view.episodes]
    execution = None if view.settings is None else view.settings.execution
    slippage = None
    if execution is not None:
        traded = sum(trade.quantity * (trade.entry_price + trade.exit_price) for trade in trades)
        slippage = traded * execution.slippage
    by_seat: dict[str, list[Event]] = {}
    for event in view.index.of_kind(CALL):
        by_seat.setdefault(event.payload["call"]["prompt"], []).append(event)
    page, cursor = page_of(sorted(by_seat.items()), arguments)
    seats = tuple(_seat(seat, calls) for seat, calls in page)
    newest = [known.row for known in view.episodes[-1:]]
    return tool_results.CostResult(
        **view.cite((*newest, *(seat.row for seat in seats)), cursor),
        fees=sum(trade.fees for trade in trades),
        slippage=slippage,
        funding_bps=None if execution is None else execution.funding_bps,
        borrow_bps=None if execution is None else execution.borrow_bps,
        seats=seats,
    )


def _seat(seat: str, calls: list[Event]) -> tool_results.SeatCost:
    usages = [event.payload["call"]["usage"] or {} for event in calls]
    return tool_results.SeatCost(
        seat=seat,
        calls=len(calls),
        input_tokens=sum(usage.get("input_tokens", 0) for usage in usages),
        output_tokens=sum(usage.get("output_tokens", 0) for usage in usages),
        usd=sum(event.payload["usd"] for event in calls),
        row=row_of(calls[-1]),
    )
