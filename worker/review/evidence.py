"""The evidence tools over a store: which handler answers which tool."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from agents.tool_hosts.in_process import Handler, InProcessTools
from schemas.claims import FactRow
from services.evidence import tool_arguments, tool_results
from services.evidence.run_facts import RunFacts
from services.evidence.tools import page_of
from services.evidence_tools import account_answers, decision_answers, lesson_answers, market_answers
from services.evidence_tools.run_view import RunView, iso
from services.evidence_tools.tool_claims import CLAIMS, statements_of
from services.ports import ToolProgress
from worker.review.rule_trial import NoteTrial, RuleTrials
from worker.review.run_facts import facts_of
from worker.review.run_views import RunViews

if TYPE_CHECKING:
    from services.store import RunRecord

FIRST_ROW = FactRow(seq=0, kind="genesis")
Answer = Callable[[RunView, Any], tool_results.ToolResult]
OF_A_RUN: Mapping[str, Answer] = {
    "market": market_answers.market,
    "trades": market_answers.trades,
    "account": account_answers.account,
    "costs": account_answers.costs,
    "decisions": decision_answers.decisions,
    "why": market_answers.why,
    "playbooks": lesson_answers.playbooks,
    "reports": lesson_answers.reports,
    "gate": lesson_answers.gate,
}


def store_tools(views: RunViews, note: NoteTrial | None = None) -> InProcessTools:
    """The tools that answer from the runs of a store.

    Args:
        views: of the store.
        note: enters a rule in the ledger of trials; without it no rule is tried.
    """
    facts = ViewFacts(views)
    handlers: dict[str, Handler] = {name: _on_view(views, name, facts) for name in OF_A_RUN}

    async def list_runs(
        arguments: tool_arguments.RunListArguments, progress: ToolProgress
    ) -> tool_results.RunListResult:
        records = await views.records()
        return _runs(records, await views.newest(records), arguments, whole=views.at is None)

    async def check_plan(
        arguments: tool_arguments.PlanArguments, progress: ToolProgress
    ) -> tool_results.PlanResult:
        from worker.review.plan_of_run import checked_plan  # loads the engine, which no other tool needs

        return await checked_plan(await views.view(arguments.run, arguments.at, progress), arguments)

    handlers |= {"runs": list_runs, "check": check_plan}
    if note is not None:
        rules = RuleTrials(note)

        async def backtest_rule(
            arguments: tool_arguments.RuleArguments, progress: ToolProgress
        ) -> tool_results.RuleResult:
            view = await views.view(arguments.run, arguments.at)  # progress is that of the trial
            return await rules.try_rule(view, await views.record(arguments.run), arguments, progress)

        handlers["rule"] = backtest_rule
    return InProcessTools(handlers)


class ViewFacts:
    """The facts of each view of a run, folded once."""

    def __init__(self, views: RunViews) -> None:
        self._views = views
        self._known: WeakKeyDictionary[RunView, RunFacts] = WeakKeyDictionary()

    async def of(self, view: RunView, at: int | None) -> RunFacts:
        """Those of a view as of `at`, ns; what the end of the run brought where no clock is set."""
        if view not in self._known:
            ended = at is None and self._views.at is None
            self._known[view] = facts_of(view, await self._views.record(view.run_id), ended=ended)
        return self._known[view]


def _on_view(views: RunViews, name: str, facts: ViewFacts) -> Handler:
    answer = OF_A_RUN[name]

    async def answer_call(
        arguments: tool_arguments.RunArguments, progress: ToolProgress
    ) -> tool_results.ToolResult:
        view = await views.view(arguments.run, arguments.at, progress)
        result = answer(view, arguments)
        if name not in CLAIMS:
            return result
        known = await facts.of(view, arguments.at)
        return result.model_copy(update={"statements": statements_of(name, arguments, result, known)})

    return answer_call


def _runs(
    records: "list[RunRecord]", moment: int | None, arguments: tool_arguments.RunListArguments, *, whole: bool
) -> tool_results.RunListResult:
    page, cursor = page_of(records, arguments, lambda record: record.number, newest_first=True)
    seen = tuple(_run(record, whole=whole) for record in page)
    return tool_results.RunListResult(
        known_at=None if moment is None else iso(moment),
        rows=tuple(run.row for run in seen if run.row is not None),
        next_cursor=cursor,
        total=len(records),
        runs=seen,
    )


def _run(record: "RunRecord", *, whole: bool) -> tool_results.RunSeen:
    performance = (record.document or {}).get("performance", {})
    end = {
        "status": record.status,
        "events": record.events,
        "trades": performance.get("trades"),
        "total_return": performance.get("total_return"),
    }
    return tool_results.RunSeen(
        run_id=record.run_id,
        name=record.name,
        mode=record.mode,
        symbols=tuple(record.data["symbols"]),
        timeframe=record.data["timeframe"],
        row=FIRST_ROW if record.events else None,
        **(end if whole else {}),
    )
