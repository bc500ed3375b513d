"""`replan --write` as a change plan: what a verdict changed, approved by whoever asks, as a folder."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from schemas.errors import ConfigError
from schemas.playbook import PlaybookVersion
from schemas.settings import Settings
from schemas.vocabulary import VersionState
from services.plans.drafting import EmptyPlan, Proposed, draft
from services.store.change_plans import Operator
from worker.review.plan_facts import read_plan_facts
from worker.review.plan_folder import carry_out
from worker.review.plan_making import in_wall_time
from worker.review.playbook_files import file_names, write_in_force
from worker.review.replanning import Effect
from worker.review.report_finder import FoundReport

if TYPE_CHECKING:
    from services.store import Store


async def write_approved(
    store: "Store",
    settings: Settings,
    folder: Path,
    effects: Sequence[Effect],
    versions: tuple[PlaybookVersion, ...],
    found: FoundReport,
    by: str,
) -> tuple[str | None, tuple[str, ...]]:
    """Write the versions that a verdict has led to, as a plan that is approved at once.

    Args:
        store: holds the run, and keeps the plan.
        settings: of the run.
        folder: where to write; absolute.
        effects: of the verdict's actions.
        versions: every version as it stands after them.
        found: the report.
        by: whoever approves.

    Returns:
        The plan's id, None where no version in force has changed; and the names of the files.

    Raises:
        ConfigError: the folder holds something else, or cannot be written.
    """
    run = await store.runs.find(found.run_id)
    before = found.known_at - (found.source == "run")  # what a run has decided itself is in force by then
    verdict_id = None if found.verdict is None else found.verdict.content_hash[:16]
    facts = await read_plan_facts(store, run, settings, trades=False, at=before)
    plan = draft(
        [item for effect in effects for item in _proposed(effect)], facts, "report",
        understanding=f"Replan on report {found.report_id}.", folder=str(folder),
        report_id=found.report_id, verdict_id=verdict_id,
    )  # fmt: skip
    if isinstance(plan, EmptyPlan):
        reason = f"replan on report {found.report_id}"
        return None, write_in_force(
            folder, versions, run_id=run.run_id, known_at=found.known_at, reason=reason
        )
    plan, now = in_wall_time(plan, facts.expires_at - facts.at), time.time_ns()
    await store.plans.put(run.run_id, plan)
    who = Operator(by, now, now)
    await store.plans.approve(run.run_id, plan.plan_id, plan.content_hash, who)
    ended = await store.plans.carry_out(
        run.run_id,
        plan.plan_id,
        lambda plan: carry_out(plan, versions, run.run_id, known_at=found.known_at),
    )
    if ended.state != "completed":
        raise ConfigError("; ".join(ended.reasons))
    return plan.plan_id, file_names(versions)


def _proposed(effect: Effect) -> list[Proposed]:
    """What an action has brought into force; what it only tries in shadow is no step."""
    made = [version for version in effect.transitions if version.state is VersionState.ACTIVE]
    return [Proposed(effect.action, after=made[-1].definition)] if made and effect.refused is None else []
