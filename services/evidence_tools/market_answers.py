"""What the market and the trades of a run were: snapshots of symbols, resolved trades, reasons of a fill."""

from collections import Counter
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any

from schemas.episode import Episode
from schemas.errors import ToolRefused
from schemas.regime import RegimeLabels
from schemas.vocabulary import REGIMES
from services.claims.subjects import NotInRun, read_period
from services.evidence import tool_arguments, tool_results
from services.evidence.catalogue import CATALOGUE, is_loss, won
from services.evidence.facts import Subject
from services.evidence.selection import KnownEpisode, chosen_of
from services.evidence.tools import NEAR, demand_known, page_of, the_one
from services.evidence_tools.run_view import RunView, iso, row_of, with_times
from services.journal.index import FILL_KINDS, Event
from services.journal.lineage import LineageNode, trace, trace_move

FIGURES = (
    "trades",
    "winners",
    "losers",
    "win_rate",
    "mean_r",
    "median_r",
    "total_r",
    "best_r",
    "worst_r",
    "hold_p50",
    "mean_mae",
    "mean_mfe",
    "pnl",
    "fees",
    "profit_factor",
    "hold_mean",
)
# Which trades stand first -> what they have most of.
ORDERS: dict[str, Callable[[Episode], float]] = {
    "best": lambda episode: episode.r,
    "worst": lambda episode: -episode.r,
    "longest": lambda episode: episode.hold_bars,
    "shortest": lambda episode: -episode.hold_bars,
}
COMMON: dict[str, Callable[[Episode], str]] = {
    "playbook": lambda trade: trade.playbook_id,
    "outcome": lambda trade: "won" if won(trade) else "lost" if is_loss(trade) else "even",
}


def market(view: RunView, arguments: tool_arguments.SnapshotArguments) -> tool_results.SnapshotResult:
    """The newest snapshot of each symbol that was asked for."""
    demand_known("symbol", arguments.symbol, view.symbols)
    newest = view.newest_snapshots
    wanted = sorted(view.symbols) if arguments.symbol is None else [arguments.symbol]
    found = [(number, newest[symbol]) for number, symbol in enumerate(wanted) if symbol in newest]
    page, cursor = page_of(found, arguments, lambda item: item[0])
    snapshots = tuple(_snapshot(event) for _, event in page)
    return tool_results.SnapshotResult(
        **view.cite((snapshot.row for snapshot in snapshots), cursor),
        snapshots=snapshots,
    )


def _snapshot(event: Event) -> tool_results.SnapshotSeen:
    seen = event.payload["snapshot"]
    labels = None if seen["regime"] is None else RegimeLabels.model_validate(seen["regime"]["labels"])
    return tool_results.SnapshotSeen(
        symbol=seen["symbol"],
        bar=iso(seen["bar_label"]),
        known_at=iso(seen["known_at"]),
        close=seen["close"],
        regime=None if labels is None else labels.key,
        structure=None if labels is None else str(labels.structure),
        state=seen["state"],
        events=tuple(seen["events"]),
        features=seen["features"],
        position=with_times(seen["position"]),
        policy_id=seen["active_policy_id"],
        row=row_of(event),
    )


def trades(view: RunView, arguments: tool_arguments.TradeArguments) -> tool_results.TradeResult:
    """Resolved trades that match, newest first, with the figures of all of them."""
    demand_known("symbol", arguments.symbol, view.symbols)
    demand_known("playbook", arguments.playbook_id, view.playbook_ids)
    demand_known("regime", arguments.regime, REGIMES)
    subject = Subject(
        playbook=arguments.playbook_id,
        symbol=arguments.symbol,
        regime=arguments.regime,
        outcome=arguments.outcome,
        direction=arguments.direction,
        period=None if arguments.period is None else _read_period(arguments.period),
    )
    matching = chosen_of(view.episodes, subject)
    page, cursor = _page(matching, arguments)
    seen = tuple(_episode(known, view.exit_of(known)) for known in page)
    found = [known.episode for known in matching]
    modes = Counter(str(trade.failure_mode) for trade in found if trade.failure_mode is not None)
    return tool_results.TradeResult(
        **view.cite((item.row for item in seen), cursor),
        figures=_figures(found),
        failure_modes=dict(sorted(modes.items())),
        groups=_groups(matching, arguments.by),
        trades=seen,
    )


def _read_period(period: str) -> tuple[int, int]:
    try:
        return read_period(period)
    except NotInRun as error:
        raise ToolRefused(str(error)) from error


def _page(
    matching: list[KnownEpisode], arguments: tool_arguments.TradeArguments
) -> tuple[list[KnownEpisode], str | None]:
    """A page by time, or of the trades that have most of what the order names; of equal ones the newest."""
    if arguments.order is None:
        return page_of(matching, arguments, _place, newest_first=True)
    rank = ORDERS[arguments.order]
    ranked = sorted(matching, key=lambda known: (-rank(known.episode), -_place(known)))
    return page_of(ranked, arguments)


def _groups(matching: list[KnownEpisode], by: str | None) -> tuple[tool_results.GroupSeen, ...]:
    if by is None:
        return ()
    common = COMMON.get(by) or attrgetter(by)
    found: dict[str, list[KnownEpisode]] = {}
    for known in matching:
        found.setdefault(str(common(known.episode)), []).append(known)
    groups = [
        tool_results.GroupSeen(
            name=name, figures=_figures([trade.episode for trade in some]), row=some[-1].row
        )
        for name, some in found.items()
    ]
    return tuple(sorted(groups, key=lambda group: (-group.figures["total_r"], group.name)))


def _place(known: KnownEpisode) -> int:
    return known.row.seq or 0


def _figures(trades: list[Episode]) -> dict[str, float]:
    """What the fact catalogue answers on these trades; the count alone where there is none."""
    if not trades:
        return {"trades": 0.0}
    payload = {name: CATALOGUE[name](trades) for name in FIGURES}
    return {name: float(value) for name, value in payload.items() if value is not None}


def _episode(known: KnownEpisode, fill_id: str | None) -> tool_results.EpisodeSeen:
    trade = known.episode
    names = tool_results.EpisodeSeen.model_fields.keys() & Episode.model_fields.keys()
    same = {name: getattr(trade, name) for name in names - {"exit_reason", "failure_mode"}}
    return tool_results.EpisodeSeen(
        **same,
        entered=iso(trade.entry_label),
        exited=iso(trade.exit_label),
        exit_reason=str(trade.exit_reason),
        failure_mode=trade.failure_mode and str(trade.failure_mode),
        fill_id=fill_id,
        row=known.row,
    )


def why(view: RunView, arguments: tool_arguments.FillArguments) -> tool_results.FillResult:
    """The tree of reasons behind a fill or a stop move, step by step in depth first order."""
    index, prefix = view.index, arguments.fill_id
    opened = view.open_entries.get(prefix)
    known = (_key(event) for kind in FILL_KINDS for event in index.of_kind(kind)[-NEAR:])
    found = [*index.fills(prefix), *index.stop_moves(prefix)] or _exits(view, prefix)
    found = found or ([opened] if opened else [])
    event = the_one("fill", prefix, found, _key, known)
    root = trace(index, event) if event.row.kind in FILL_KINDS else trace_move(index, event)
    page, cursor = page_of(list(_nodes(root, 0)), arguments)
    shown = tuple(_step(node, depth) for node, depth in page)
    return tool_results.FillResult(
        **view.cite((step.row for step in shown), cursor),
        fill_id=_key(event),
        steps=shown,
    )


def _exits(view: RunView, prefix: str) -> list[Event]:
    trades = (known for known in view.episodes if known.episode.episode_id.startswith(prefix))
    exits = (view.exit_of(known) for known in trades)
    return [event for fill in exits if fill is not None for event in view.index.fills(fill)]


def _key(event: Event) -> str:
    return str(event.payload.get("fill_id") or event.payload["amendment_id"])


def _nodes(node: LineageNode, depth: int) -> Iterator[tuple[LineageNode, int]]:
    yield node, depth
    for child in node.children:
        yield from _nodes(child, depth + 1)


def _step(node: LineageNode, depth: int) -> tool_results.LineageStep:
    row: Any = None if node.seq is None else {"seq": node.seq, "kind": node.kind}
    facts = {name: value for name, value in node.facts.items() if value not in (None, [], {}, "")}
    return tool_results.LineageStep(
        depth=depth,
        title=node.title,
        kind=node.kind,
        id=node.id,
        symbol=node.symbol,
        found=node.found,
        facts=with_times(facts),
        row=row,
    )
