"""Texts that are sent to the console: their claims are held against a run, or they are refined.

Nothing is written to the store.
"""

from typing import Annotated, Any

from fastapi import APIRouter, Depends
from pydantic import BaseModel, ConfigDict, StringConstraints
from starlette.exceptions import HTTPException

from schemas.errors import ConfigError
from worker.console.desk import Desk, desk_of
from worker.review.run_facts import read_facts
from worker.studies.given_text import MAX_TEXT_BYTES

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
texts = APIRouter(prefix="/api")


class GivenText(BaseModel):
    """A text about a run; as of a report, or of the end."""

    model_config = ConfigDict(extra="forbid")

    text: Annotated[str, StringConstraints(min_length=1, max_length=MAX_TEXT_BYTES, strip_whitespace=True)]
    run: Name = "latest"
    report: Name | None = None


class RefinedText(GivenText):
    """A text, what it is to answer, and how it is refined, as `thinktwice deliberate` names it."""

    preset: Annotated[str, StringConstraints(max_length=64)]
    question: Annotated[str, StringConstraints(max_length=8_000)] = ""
    mode: Annotated[str, StringConstraints(max_length=64)] | None = None


@texts.post("/factcheck")
async def factcheck(given: GivenText, desk: Annotated[Desk, Depends(desk_of)]) -> dict[str, Any]:
    """What a text claims about a run, each claim with its verdict and its rows."""
    from services.deliberation.extraction import check_read
    from worker.studies.deliberated import document_of_check, read_text_claims

    text, record = _plain(given.text), await desk.run(given.run)
    try:
        facts = await read_facts(desk.store, record, report=given.report)
        read = await read_text_claims(text, facts, desk.settings, desk.environment)
    except ConfigError as error:
        raise HTTPException(422, str(error)) from error
    return {"run_id": record.run_id, **document_of_check(check_read(text, read, facts), read)}


@texts.post("/deliberate")
async def deliberate(given: RefinedText, desk: Annotated[Desk, Depends(desk_of)]) -> dict[str, Any]:
    """A text written anew from those of its claims that are so, with critiques and scores on the way."""
    from worker.studies import deliberated

    text, record = _plain(given.text), await desk.run(given.run)
    try:
        preset = deliberated.preset_named(given.preset)
        changed = deliberated.with_mode(desk.settings.deliberation, preset, given.mode)
        settings = desk.settings.model_copy(update={"deliberation": changed})
        request = deliberated.TextRequest(text, preset, deliberated.check_question(given.question))
        (done,) = await deliberated.deliberate_all(
            [request],
            settings,
            desk.environment,
            lambda: read_facts(desk.store, record, report=given.report),
        )
    except ConfigError as error:
        raise HTTPException(422, str(error)) from error
    return deliberated.document_of_text(record.run_id, done)


def _plain(text: str) -> str:
    if len(text.encode("utf-8", "replace")) > MAX_TEXT_BYTES or "\0" in text:
        raise HTTPException(422, f"a text has at most {MAX_TEXT_BYTES:,} bytes, and none of them is zero")
    return text
