"""The page of questions: a form for each tool, words where a model is configured, and their answers."""

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from services.evidence.tools import TOOLS
from worker.console.api import Question, ask_run
from worker.console.pages import PageDesk, page, templates
from worker.console.reflections import sum_up_questions

HEADS = frozenset({"known_at", "rows", "run_id"})  # of a result: what it is of, not what was found
ask_pages = APIRouter(include_in_schema=False)


@ask_pages.get("/ask")
async def ask_page(request: Request, desk: PageDesk) -> Response:
    """A form for each tool, made from its schema, and words where a model is configured."""
    tools = [tool.definition.payload() for tool in TOOLS.values() if tool.reads_only]
    stored = await desk.store.runs.all()
    records = [record.run_id for record in stored if record.damage is None and record.mode != "guard"]
    return page(
        request,
        "ask.html",
        "Ask",
        tools=tools,
        runs=records[::-1],
        in_words=desk.settings.uses_models,
        asked=await sum_up_questions(desk.store),
    )


@ask_pages.post("/ask")
async def answer(given: Question, desk: PageDesk) -> Response:
    """The part of the page that answers: statements with their rows, else what the tools found."""
    found = await ask_run(given, desk)
    statements = [claim for section in found["sections"] for claim in section["statements"]]
    results = {} if statements else _results(found["results"].values())
    text = templates().get_template("answer.html").render(found, statements=statements, found=results)
    return HTMLResponse(text)


def _results(results: Any) -> dict[str, list[Any]]:
    """What tools found that no statement says: items by field; an item has its run and its row."""
    fields = {name: value for result in results for name, value in result.items() if name not in HEADS}
    return {
        name: [item if isinstance(item, dict) else {"": item} for item in value]
        if isinstance(value, list)
        else [{"": value}]
        for name, value in fields.items()
        if value not in (None, "", [], {})
    }
