"""The playbooks of a run at a moment as files: active ones to trade with, candidates beside, and their ends.

From a rebuilt session, or from the journal for a moment that the run itself has decided. A change plan of a
run that is over is carried out so: its playbooks as files, written whole and once.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schemas.canonical import ns_to_datetime
from schemas.errors import ConfigError
from schemas.plan import ChangePlan, FolderAction, PlanState
from schemas.playbook import PlaybookDefinition, PlaybookVersion
from schemas.vocabulary import VersionState
from services.journal.chain import JournalRow
from services.playbooks.measures import alter
from services.playbooks.writing import (
    MANIFEST,
    demand_writable,
    manifest_time,
    named_files,
    write_playbooks,
    written_manifest,
)

if TYPE_CHECKING:
    from services.store import Store

KINDS = frozenset({"playbook_version", "measure_renewed"})
Outcome = tuple[PlanState, tuple[str, ...]]
OPEN = (VersionState.CANDIDATE, VersionState.SHADOW)


def in_force(history: Iterable[PlaybookVersion]) -> tuple[PlaybookVersion, ...]:
    """The latest state of every version, from transitions in order."""
    latest = {version.definition.content_hash: version for version in history}
    return tuple(latest.values())


def next_version(history: Sequence[PlaybookVersion], row: JournalRow) -> PlaybookVersion:
    """The version that a row of `KINDS` is about, as it stands from then on; `history` came before."""
    payload = json.loads(row.payload)
    if row.kind != "measure_renewed":
        return PlaybookVersion.of_row(payload)
    renewed = payload["version_hash"]
    found = (version for version in reversed(history) if version.definition.content_hash == renewed)
    return alter(next(found), expires_at=payload["expires_at"])


def write_in_force(
    folder: Path,
    versions: Sequence[PlaybookVersion],
    *,
    run_id: str,
    known_at: int,
    reason: str,
    plan: Mapping[str, Any] | None = None,
) -> tuple[str, ...]:
    """Write the versions that are active or on trial; names of the files.

    `plan` is what the manifest says of the change plan that was carried out with it.

    Raises:
        ConfigError: the folder holds something else, or cannot be written; then nothing has changed.
    """
    active, tried = _part(versions)
    manifest = {
        "run_id": run_id,
        "known_at": ns_to_datetime(known_at).isoformat(),
        "reason": reason,
        "active": [shown_version(version) for version in active],
        "candidates": [shown_version(version) for version in tried],
        **({} if plan is None else {"plan": dict(plan)}),
    }
    return write_playbooks(
        folder,
        [version.definition for version in active],
        [version.definition for version in tried],
        manifest,
    )


def file_names(versions: Sequence[PlaybookVersion]) -> tuple[str, ...]:
    """Names of the files that `write_in_force` writes."""
    active, tried = ([version.definition for version in part] for part in _part(versions))
    return (*named_files(active, tried), MANIFEST)


def _part(versions: Sequence[PlaybookVersion]) -> tuple[list[PlaybookVersion], list[PlaybookVersion]]:
    active = [version for version in versions if version.state is VersionState.ACTIVE]
    return active, [version for version in versions if version.state in OPEN]


def shown_version(one: PlaybookVersion) -> dict[str, Any]:
    """A version for a list; `ends` is when its trial ends, or its first measure is weighed again."""
    return {
        "playbook_id": one.definition.id,
        "version": one.definition.version,
        "version_hash": one.definition.content_hash,
        "state": str(one.state),
        "reason": one.reason,
        "ends": None if one.expires_at is None else ns_to_datetime(one.expires_at).isoformat(),
    }


async def versions_at(store: "Store", run_id: str, at: int | None) -> tuple[PlaybookVersion, ...]:
    """Every version of a run as it stood at a time, ns; None: at its newest row."""
    history: list[PlaybookVersion] = []
    async for row in store.journal.rows(run_id, kinds=KINDS, until=at):
        history.append(next_version(history, row))
    return in_force(history)


def folder_of(plan: ChangePlan) -> Path:
    """Where a plan writes."""
    return next(Path(step.action.folder) for step in plan.steps if isinstance(step.action, FolderAction))


def demand_place(plan: ChangePlan) -> None:
    """Refuse a place that cannot be written, before a plan is approved for it.

    Raises:
        ConfigError: it is no folder, it holds something else, or a link has led elsewhere since.
    """
    folder = folder_of(plan)
    leads_to = folder.resolve()
    if leads_to != folder:
        raise ConfigError(
            f"the folder {str(folder)!r} of the plan leads to {str(leads_to)!r} by now: move the link away, "
            "or make another plan"
        )
    demand_writable(folder, "the folder")


def carry_out(
    plan: ChangePlan,
    versions: Sequence[PlaybookVersion],
    run_id: str,
    *,
    present: Sequence[PlaybookVersion] = (),
    known_at: int | None = None,
) -> Outcome:
    """Write the playbooks that a plan makes, unless a process that died has written them already.

    Args:
        plan: as approved.
        versions: of the run as of the plan's basis.
        run_id: the run.
        present: of the run as it is now, of a plan that was made on its newest row.
        known_at: ns, where the versions are those that its steps had made by then; None: as of the basis.
    """
    if written_manifest(folder_of(plan)).get("plan") == _mark(plan):
        return "completed", ()
    stale: tuple[str, ...] = ()
    if known_at is None:
        stale = (*_list_changed(plan, versions), *_list_gone_on(versions, present), *_list_written(plan))
    if stale:
        return "stale", stale
    at = plan.basis.at if known_at is None else known_at
    return _write(plan, with_made(plan, versions), (run_id, at), _mark(plan), "completed")


def roll_back(plan: ChangePlan, versions: Sequence[PlaybookVersion], run_id: str) -> Outcome:
    """Write the playbooks of before the plan into its folder.

    Raises:
        ConfigError: somebody else has written there since.
    """
    mark, there = _mark(plan) | {"rolled_back": True}, written_manifest(folder_of(plan))
    if there.get("plan") == mark:
        return "rolled_back", ()
    if there and there.get("plan") != _mark(plan):
        where = str(folder_of(plan))
        raise ConfigError(
            f"plan {plan.plan_id} is not rolled back: {_holder(there)} stands in {where!r} since"
        )
    return _write(plan, versions, (run_id, plan.basis.at), mark, "rolled_back")


def with_made(plan: ChangePlan, versions: Sequence[PlaybookVersion]) -> tuple[PlaybookVersion, ...]:
    """The versions with those that a plan makes in the place of the active ones."""
    made = {item.playbook_id: (item.definition, step) for step in plan.steps for item in step.makes}
    found = []
    for version in versions:
        name = version.definition.id
        if version.state is VersionState.ACTIVE and name in made:
            definition, step = made[name]
            if definition.content_hash != version.definition.content_hash:
                parent = version.definition.content_hash
                version = alter(
                    version, definition=definition, parent_hash=parent, reason=step.action.reason,
                    report_id=plan.report_id, verdict_id=plan.verdict_id, action_id=None, expires_at=None,
                )  # fmt: skip
        found.append(version)
    return tuple(found)


def _list_changed(plan: ChangePlan, versions: Sequence[PlaybookVersion]) -> tuple[str, ...]:
    """Playbooks of the plan that are in force in other versions than those it was made for."""
    active = _active(versions)
    return tuple(
        f"{name} version {stood.definition.version} was in force when it was made, now another is"
        for name, stood in plan.basis.versions.items()
        if name not in active or active[name].content_hash != stood.version_hash
    )


def _list_gone_on(versions: Sequence[PlaybookVersion], present: Sequence[PlaybookVersion]) -> tuple[str, ...]:
    """What a run that went on has changed since."""
    then, now = _active(versions), _active(present)
    return tuple(
        f"{name} version {now[name].version} is in force: the run has gone on since the plan was made"
        for name in sorted(now)
        if name not in then or then[name].content_hash != now[name].content_hash
    )


def _active(versions: Sequence[PlaybookVersion]) -> dict[str, PlaybookDefinition]:
    return {
        version.definition.id: version.definition
        for version in versions
        if version.state is VersionState.ACTIVE
    }


def _list_written(plan: ChangePlan) -> tuple[str, ...]:
    """Whether its folder was written after the plan was made: its playbooks would be lost unseen."""
    folder = folder_of(plan)
    there = written_manifest(folder)
    if not there or manifest_time(folder) <= plan.made_at:
        return ()
    return (f"{_holder(there)} was written to {str(folder)!r} since it was made",)


def _holder(manifest: Mapping[str, Any]) -> str:
    named = manifest.get("plan")
    plan_id = named.get("plan_id") if isinstance(named, Mapping) else None
    return "another writer" if plan_id is None else f"plan {plan_id}"


def _write(
    plan: ChangePlan,
    versions: Sequence[PlaybookVersion],
    of: tuple[str, int],
    mark: dict[str, object],
    end: PlanState,
) -> Outcome:
    reason = f"plan {plan.plan_id}, revision {plan.revision}"
    if plan.report_id is not None:
        reason = f"replan on report {plan.report_id}"
    try:
        write_in_force(folder_of(plan), versions, run_id=of[0], known_at=of[1], reason=reason, plan=mark)
    except ConfigError as error:
        return "failed", (str(error),)
    return end, ()


def _mark(plan: ChangePlan) -> dict[str, object]:
    return {"plan_id": plan.plan_id, "plan_hash": plan.content_hash}
