"""A question that asks for a change: a change plan is drafted and waits for a decision; nothing happens."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents.change_reader import UnreadableText
from schemas.errors import ConfigError
from services.evidence_tools.run_view import iso
from services.plans.detection import DetectionContext, TwoPhase, detect_two_phase
from worker.pages.figures import shown_time
from worker.review.asking import empty_document
from worker.review.plan_making import PlanRequest, plan_text
from worker.review.run_requests import plan_request, takes_requests, will_go_on

if TYPE_CHECKING:
    from schemas.settings import Settings
    from services.store import RunRecord, Store
    from services.store.plan_records import StoredPlan

MOST_FOLDERS = 1_000


def asks_for_change(question: str, record: "RunRecord", settings: "Settings") -> tuple[TwoPhase, str | None]:
    """Whether a question takes two phases, and the words of the change; None where it only asks."""
    live = record.mode == "paper" and record.status == "running"
    found = detect_two_phase(question, DetectionContext(live=live), settings.plans)
    if question.rstrip().endswith("?"):
        found = found.model_copy(
            update={"should_use": False, "reason": "what ends with a question mark only asks"}
        )
    return found, question if found.should_use else None


def change_request(record: "RunRecord", into: Path | None, by: str) -> PlanRequest:
    """What is to be planned; of a run that is over into a folder that is not there yet, where none is named.

    Raises:
        ConfigError: nothing of the run can be planned.
    """
    goes_on = takes_requests(record) or will_go_on(record)
    folder = into if into is not None or goes_on else free_folder(record.run_id)
    return plan_request(record, folder, by)


async def answer_change(
    store: "Store", request: PlanRequest, statement: str, settings: "Settings", *, attended: bool
) -> dict[str, Any]:
    """The document of an answer with its change plan; without one where no model reads the words.

    The model is that of `settings`, or of the run.

    Raises:
        ConfigError: a name is unknown, or nothing of it can be planned.
    """
    run_id = request.run.run_id
    try:
        stored = await plan_text(store, request, statement, forced=False, reader=settings)
    except UnreadableText as error:
        back = f"That asks for a change, which can be planned once it is clear: {error}"
        status = "clarify" if attended else "abstained"
        return empty_document(question=statement, run_id=run_id, status=status, clarification=back)
    return empty_document(
        question=statement,
        run_id=run_id,
        known_at=iso(stored.plan.basis.at),
        status="plan",
        answer=_describe(stored),
        confidence=1.0,
        complete=True,
        reasoning=stored.record.reasoning or "",
        two_phase=stored.record.two_phase,
        plan_id=stored.record.plan_id,
    )


def free_folder(run_id: str) -> Path:
    """A folder that is not there yet, in the folder where the command runs; it is made by an approval alone.

    Raises:
        ConfigError: every name is taken.
    """
    names = [f"{run_id}-playbooks", *(f"{run_id}-playbooks-{number}" for number in range(2, MOST_FOLDERS))]
    free = next((Path(name) for name in names if not Path(name).exists()), None)
    if free is None:
        raise ConfigError(f"{names[0]!r} and all like it are taken: name a folder with --into DIR")
    return free


def _describe(stored: "StoredPlan") -> str:
    record = stored.record
    lines = [
        f"This asks for a change, so it became change plan {record.plan_id} of run {record.run_id}.",
        f"Nothing has changed: the plan waits for a decision until {shown_time(record.expires_at)}.",
    ]
    if stored.folder is not None:
        folder = Path(stored.folder)
        named = folder.name if folder.parent == Path.cwd() else str(folder)
        lines.append(f"Approved, it writes playbooks to the folder {named!r}, and nothing before.")
    lines.append(f"To approve it: thinktwice plans approve {record.plan_id} --hash {record.hash[:12]}")
    return "\n".join(lines)
