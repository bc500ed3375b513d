"""A plan of one's own, held against a run: what the fast reflection says of it at the newest evaluation.

Snapshot, playbook and guardrails are the run's; the plan is the playbook's own rules with what was given in
their place. Cases of memory are those that the run found for such a plan; without them the check says so.
"""

from pydantic import ValidationError

from agents.strategies.rule_strategist import candidate, proposal_of
from schemas.errors import ToolRefused, first_fault
from schemas.playbook import PlaybookDefinition
from schemas.proposal import PolicyProposal
from schemas.reflection import MemorySummary, PolicyLevelReflectionRequest
from schemas.settings import Settings
from schemas.snapshot import PolicySnapshot
from schemas.vocabulary import VersionState
from services.evidence import tool_arguments, tool_results
from services.evidence.tools import demand_known
from services.evidence_tools.run_view import RunView, row_of
from services.journal.index import Event
from services.playbooks.registry import RegistryReader
from services.policy_checks.reasons import with_reasons
from services.policy_loop.invariant_context import invariant_context
from worker.studies.plan_check.plan_check import check_plan

GIVEN = ("setup", "activation", "stop", "target", "invalidation", "horizon_bars", "conviction", "rationale")


async def checked_plan(view: RunView, arguments: tool_arguments.PlanArguments) -> tool_results.PlanResult:
    """The verdict on a plan.

    Raises:
        ToolRefused: symbol, playbook or direction are unknown, or nothing was evaluated yet.
    """
    settings = _settings(view)
    demand_known("symbol", arguments.symbol, view.symbols)
    event = _newest_snapshot(view, arguments.symbol)
    snapshot = PolicySnapshot.model_validate(event.payload["snapshot"])
    active = {
        version.definition.id: version.latest
        for version in view.history.of()
        if version.latest.state is VersionState.ACTIVE
    }
    demand_known("active playbook", arguments.playbook_id, active)
    playbook = active[arguments.playbook_id].definition
    demand_known(f"direction of {playbook.id}", arguments.direction, sorted(playbook.rules))
    reader = RegistryReader(active, {item.definition.content_hash: item for item in active.values()})
    proposal = _proposal(playbook, snapshot, arguments)
    memory = _memory(view, event, proposal)
    cases = None if memory is None else MemorySummary.model_validate(memory.payload["result"]["memory"])
    try:
        request = PolicyLevelReflectionRequest(
            snapshot=snapshot,
            proposal=proposal,
            playbook=playbook,
            state=snapshot.state,
            memory=cases,
            invariants=invariant_context(settings, snapshot, reader, view.symbols),
        )
    except ValidationError as error:
        raise ToolRefused(f"the plan fits no evaluation of this run: {first_fault(error)}") from error
    versions = view.index.versions(playbook.content_hash)
    return await _result(view, request, settings, [event, *versions, *([memory] if memory else [])])


def _settings(view: RunView) -> Settings:
    if view.settings is None:
        raise ToolRefused("this run was stored by another version: its limits are not known here")
    rules = view.settings.reflection.model_copy(update={"mode": "deterministic"})
    return view.settings.model_copy(update={"reflection": rules})


def _newest_snapshot(view: RunView, symbol: str) -> Event:
    if symbol not in view.newest_snapshots:
        raise ToolRefused(f"{symbol} was not evaluated by then: give a later at, or another symbol")
    return view.newest_snapshots[symbol]


def _proposal(
    playbook: PlaybookDefinition, snapshot: PolicySnapshot, arguments: tool_arguments.PlanArguments
) -> PolicyProposal:
    known = [seen for seen in snapshot.expectations if seen.playbook_id == playbook.id]
    if not known:
        raise ToolRefused(
            f"the newest evaluation of {snapshot.symbol} knew no {playbook.id}: give a later at"
        )
    own = proposal_of(candidate(playbook, arguments.direction, snapshot), snapshot)
    given = {name: value for name in GIVEN if (value := getattr(arguments, name)) is not None}
    changed = {"because": (), "rationale": ""} | given
    try:
        proposal = PolicyProposal.model_validate({**own.payload(), **changed})
    except ValidationError as error:
        raise ToolRefused(f"the plan is none: {first_fault(error)}") from error
    return proposal if proposal.rationale else with_reasons(proposal, snapshot)


def _memory(view: RunView, snapshot: Event, proposal: PolicyProposal) -> Event | None:
    """The reflection of the run on a plan of this playbook and direction at this snapshot."""
    for event in reversed(view.index.of_kind("policy_reflection")):
        if event.row.seq < snapshot.row.seq:
            return None
        made = view.index.get("policy_proposal", event.payload["proposal_hash"])
        if made is None or made.payload["snapshot_hash"] != snapshot.payload["snapshot_hash"]:
            continue
        plan = made.payload["proposal"] or {"playbook_id": None, "direction": None}
        same = (plan["playbook_id"], plan["direction"]) == (proposal.playbook_id, proposal.direction)
        if same and event.payload["result"].get("memory") is not None:
            return event
    return None


async def _result(
    view: RunView, request: PolicyLevelReflectionRequest, settings: Settings, events: list[Event]
) -> tool_results.PlanResult:
    done = await check_plan(request, settings, {})
    if done.result is None:
        raise ToolRefused("the check itself failed on this plan: change its rules, or leave some out")
    return tool_results.PlanResult(
        run_id=view.run_id,
        known_at=view.moment,
        rows=tuple(row_of(event) for event in events),
        status=done.result.status.value,
        proposal=request.proposal.payload(),
        findings=tuple(found.model_dump(mode="json") for found in done.result.findings),
        requested_revisions=tuple(done.result.requested_revisions),
        checks_run=tuple(name.value for name in done.result.checks_run),
    )
