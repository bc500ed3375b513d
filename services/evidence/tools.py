"""The tools that read a run: their names, words and schemas, and the one door that their arguments pass.

A tool changes nothing, but that a rule was tried is noted in the ledger of trials. What cannot be answered is
refused in one sentence that says what would work.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from pydantic import ValidationError

from schemas.errors import ToolRefused, nearest
from schemas.tool import ToolDefinition
from services.evidence import tool_arguments, tool_results

SHOWN = 8
NEAR = 200  # names that a mistyped one is compared with
LONGEST_SHOWN = 60
Item = TypeVar("Item")


@dataclass(frozen=True)
class EvidenceTool:
    """One tool before it has anything to read."""

    name: str
    description: str
    arguments: type[tool_arguments.ToolArguments]
    result: type[tool_results.ToolResult]
    reads_only: bool = True

    @cached_property
    def definition(self) -> ToolDefinition:
        """As a client is told it."""
        return ToolDefinition(
            name=self.name,
            description=self.description,
            input_schema=self.arguments.model_json_schema(),
            output_schema=self.result.model_json_schema(),
            reads_only=self.reads_only,
        )


TOOLS = {
    tool.name: tool
    for tool in (
        EvidenceTool(
            "runs",
            "Runs of the store, newest first, with their symbols and how they ended.",
            tool_arguments.RunListArguments,
            tool_results.RunListResult,
        ),
        EvidenceTool(
            "market",
            "Price, regime, features and position of a symbol at its newest evaluation.",
            tool_arguments.SnapshotArguments,
            tool_results.SnapshotResult,
        ),
        EvidenceTool(
            "playbooks",
            "Versions of playbooks: rules, state, changes, and what their trades have shown.",
            tool_arguments.PlaybookArguments,
            tool_results.PlaybookResult,
        ),
        EvidenceTool(
            "trades",
            "Resolved trades with R, exit and failure mode, and figures over all that match.",
            tool_arguments.TradeArguments,
            tool_results.TradeResult,
        ),
        EvidenceTool(
            "account",
            "Return, Sharpe, drawdown, exposure, equity, and open positions with what holds them.",
            tool_arguments.AccountArguments,
            tool_results.AccountResult,
        ),
        EvidenceTool(
            "costs",
            "Fees, slippage and carry of the trades; calls, tokens and dollars of models by seat.",
            tool_arguments.CostArguments,
            tool_results.CostResult,
        ),
        EvidenceTool(
            "decisions",
            "Why no trade was taken: policies, entries, and what stopped others, counted by reason.",
            tool_arguments.DecisionArguments,
            tool_results.DecisionResult,
        ),
        EvidenceTool(
            "reports",
            "Reports of the slow reflection with the judge's verdicts; one of them in full.",
            tool_arguments.ReportArguments,
            tool_results.ReportResult,
        ),
        EvidenceTool(
            "gate",
            "What each playbook and regime has proven: grade, mean R, interval, e-value, reason.",
            tool_arguments.GateArguments,
            tool_results.GateResult,
        ),
        EvidenceTool(
            "why",
            "Why a fill happened: back to order, policy, snapshot, checks, verdict and playbook.",
            tool_arguments.FillArguments,
            tool_results.FillResult,
        ),
        EvidenceTool(
            "check",
            "Whether a plan would pass the fast reflection now, and what would pass instead.",
            tool_arguments.PlanArguments,
            tool_results.PlanResult,
        ),
        EvidenceTool(
            "rule",
            "What an entry rule would have traded on a run's bars; the rule is noted as tried.",
            tool_arguments.RuleArguments,
            tool_results.RuleResult,
            reads_only=False,  # the note makes the next runs on these bars harder to please
        ),
    )
}


def read_arguments(tool: EvidenceTool, given: Mapping[str, Any]) -> Any:
    """The arguments of a call.

    Raises:
        ToolRefused: one is unknown, missing or out of bounds.
    """
    try:
        return tool.arguments.model_validate(dict(given))
    except ValidationError as error:
        problems = error.errors(include_url=False)
        first = next((item for item in problems if item["type"] == "extra_forbidden"), problems[0])
        name = str(first["loc"][0]) if first["loc"] else "arguments"
        known = list(tool.arguments.model_fields)
        if first["type"] == "extra_forbidden":
            listing = f"it takes {', '.join(known)}.{nearest(name, known)}"
            raise ToolRefused(f"{tool.name} has no argument {quote_value(name)}: {listing}") from error
        if first["type"] == "missing":
            raise ToolRefused(f"{tool.name} needs {name}: give it") from error
        reason = first["msg"].removeprefix("Value error, ")
        raise ToolRefused(
            f"{name} {quote_value(first['input'])}: {reason[:1].lower()}{reason[1:]}"
        ) from error


def quote_value(value: Any) -> str:
    """A given value as a message has it, cut where it is long."""
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."


def demand_span(since: int | None, at: int | None) -> None:
    """Refuse a span that ends before it begins.

    Raises:
        ToolRefused: `since` lies after `at`, both in ns.
    """
    if since is not None and at is not None and since > at:
        raise ToolRefused("since lies after at, so nothing is between them: give an earlier since")


def demand_known(what: str, name: str | None, known: Collection[str]) -> None:
    """Refuse a name that the run does not have.

    Raises:
        ToolRefused: naming the nearest ones.
    """
    if name is None or name in known:
        return
    some = ", ".join(sorted(known)[:SHOWN]) or "none"
    more = "" if len(known) <= SHOWN else f" and {len(known) - SHOWN} more"
    raise ToolRefused(f"no {what} {quote_value(name)}: there are {some}{more}.{nearest(name, known)}")


def the_one(
    what: str, prefix: str, found: Sequence[Item], name: Callable[[Item], str], known: Iterable[str]
) -> Item:
    """The only item that a prefix names.

    Raises:
        ToolRefused: it names none, or several.
    """
    if len(found) == 1:
        return found[0]
    if found:
        some = ", ".join(name(item) for item in found[:SHOWN])
        raise ToolRefused(f"{what} {quote_value(prefix)} is not unique ({some}): give more of it")
    listing = list(known)
    some = ", ".join(listing[-SHOWN:]) or "none"
    raise ToolRefused(
        f"no {what} {quote_value(prefix)}: the newest are {some}.{nearest(prefix, listing[-NEAR:])}"
    )


def page_of(
    items: Sequence[Item],
    arguments: tool_arguments.PageArguments,
    place: Callable[[Item], int] | None = None,
    *,
    newest_first: bool = False,
) -> tuple[list[Item], str | None]:
    """One page of items that lie in order of `place`, and the cursor of the next page.

    A cursor is the place of the last item that was given, so rows that are written meanwhile move nothing.
    Without `place` it is the number in a list that stays as it is.
    """
    if place is None:
        start = 0 if arguments.cursor is None else int(arguments.cursor) + 1
        end = start + arguments.limit
        return list(items[start:end]), str(end - 1) if end < len(items) else None
    ordered = list(reversed(items)) if newest_first else list(items)
    if arguments.cursor is not None:
        last = int(arguments.cursor)
        ordered = [item for item in ordered if (place(item) < last if newest_first else place(item) > last)]
    page = ordered[: arguments.limit]
    return page, str(place(page[-1])) if len(ordered) > len(page) else None
