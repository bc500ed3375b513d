"""The claims of each tool's answer: looked up in the facts of the same moment, and written by code."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from schemas.claims import WHOLE, AdviceClaim, Claim, GradeClaim, MeasureName, Of, ValueClaim
from schemas.errors import ToolRefused
from services.claims.check import ClaimResult, check
from services.claims.sections import render
from services.claims.subjects import NotInRun, members_of
from services.evidence import tool_arguments, tool_results
from services.evidence.run_facts import RunFacts

OF_TRADES: tuple[MeasureName, ...] = (
    *("trades", "win_rate", "mean_r", "total_r", "best_r", "worst_r", "profit_factor"),
    *("hold_mean", "pnl"),
)
OF_ONE_SIDE: tuple[MeasureName, ...] = (
    *("trades", "mean_r", "total_r", "best_r", "worst_r", "hold_mean", "pnl"),
)
OF_A_GROUP: tuple[MeasureName, ...] = ("trades", "mean_r", "total_r")
OF_THE_ACCOUNT: tuple[MeasureName, ...] = (
    *("account_return", "buy_and_hold", "sharpe", "max_drawdown", "drawdown", "exposure"),
    *("equity", "cash"),
)
OF_COSTS: tuple[MeasureName, ...] = ("fees", "mean_fees", "gross_pnl", "pnl", "fee_bps", "slippage_bps")
OF_DECISIONS: tuple[MeasureName, ...] = ("evaluations", "proposals", "sent_back", "stand_downs")
OF_A_CLUSTER: tuple[MeasureName, ...] = ("gate_trades", "gate_mean_r", "lower_r", "upper_r", "e_value")
EXPECTED: tuple[MeasureName, ...] = ("expected_hold_p50", "expected_hold_p90", "expected_mae_p80")
MOST_PLAYBOOKS = 20


def _values(measures: Sequence[MeasureName], of: Of = WHOLE) -> Iterator[Claim]:
    yield from (ValueClaim(measure=measure, of=of) for measure in measures)


def _trades(
    arguments: tool_arguments.TradeArguments, result: tool_results.TradeResult, facts: RunFacts
) -> Iterator[Claim]:
    of = Of(
        playbook=arguments.playbook_id,
        symbol=arguments.symbol,
        regime=arguments.regime,
        direction=arguments.direction,
        outcome=arguments.outcome,
        period=arguments.period,
    )
    of_some = OF_TRADES if arguments.outcome is None else OF_ONE_SIDE
    yield from _values(of_some if result.trades else ("trades",), of)
    if arguments.by is not None and result.trades:
        groups = members_of(arguments.by, of, facts)
        for group in result.groups:
            if group.name in groups:
                yield from _values(OF_A_GROUP, groups[group.name])


def _market(arguments: Any, result: tool_results.SnapshotResult, facts: RunFacts) -> Iterator[Claim]:
    for seen in result.snapshots:
        yield ValueClaim(measure="close", of=Of(symbol=seen.symbol))


def _playbooks(arguments: Any, result: tool_results.PlaybookResult, facts: RunFacts) -> Iterator[Claim]:
    names = dict.fromkeys(str(version["playbook_id"]) for version in result.versions)
    for name in [*names][:MOST_PLAYBOOKS]:
        of = Of(playbook=name)
        yield from _values(("trades", "mean_r"), of)
        if arguments.playbook_id is not None:
            yield from _values(EXPECTED, of)
        yield from _grade(of, facts)


def _grade(of: Of, facts: RunFacts) -> Iterator[Claim]:
    clusters = () if facts.report is None else facts.report.clusters
    named = (item for item in clusters if (item.playbook_id, item.regime) == (of.playbook, of.regime))
    found = next((item for item in named if item.timeframe is None), None)
    if found is not None:
        yield GradeClaim(of=of, grade=found.grade)


def _gate(arguments: Any, result: tool_results.GateResult, facts: RunFacts) -> Iterator[Claim]:
    for cluster in result.clusters:
        if cluster["timeframe"] is None and (cluster["regime"] is None or arguments.regime is not None):
            of = Of(playbook=cluster["playbook_id"], regime=cluster["regime"])
            yield from _grade(of, facts)
            yield from _values(OF_A_CLUSTER, of)


def _reports(arguments: Any, result: tool_results.ReportResult, facts: RunFacts) -> Iterator[Claim]:
    yield from _values(("reports",))
    if arguments.report_id is None and facts.report is not None:
        yield from _values(("report_trades", "recommendations"))
        yield AdviceClaim(action=facts.report.recommended_action)


def _decisions(arguments: Any, result: Any, facts: RunFacts) -> Iterator[Claim]:
    if arguments.symbol is None and arguments.playbook_id is None and arguments.since is None:
        yield from _values(OF_DECISIONS)


def _account(arguments: Any, result: Any, facts: RunFacts) -> Iterator[Claim]:
    yield from _values(OF_THE_ACCOUNT)


def _costs(arguments: Any, result: Any, facts: RunFacts) -> Iterator[Claim]:
    yield from _values(OF_COSTS)


CLAIMS: Mapping[str, Callable[[Any, Any, RunFacts], Iterator[Claim]]] = {
    "trades": _trades,
    "market": _market,
    "playbooks": _playbooks,
    "gate": _gate,
    "reports": _reports,
    "decisions": _decisions,
    "account": _account,
    "costs": _costs,
}


def statements_of(
    tool: str, arguments: Any, result: tool_results.ToolResult, facts: RunFacts
) -> tuple[tool_results.ToolStatement, ...]:
    """What an answer says, claim by claim; what the run has no figure for is left out.

    Raises:
        ToolRefused: a period that no calendar has.
    """
    try:
        claims = list(CLAIMS[tool](arguments, result, facts)) if tool in CLAIMS else []
    except NotInRun as error:
        raise ToolRefused(str(error)) from error
    found = ((claim, check(claim, facts)) for claim in claims)
    return tuple(
        tool_results.ToolStatement(claim=claim, text=render(claim, held), rows=held.rows)
        for claim, held in found
        if isinstance(held, ClaimResult)
    )
