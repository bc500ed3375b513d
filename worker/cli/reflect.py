"""`thinktwice reflect`: a high-level report on demand over a stored run, as of its end or of a time."""

import json as json_text
from pathlib import Path
from typing import Annotated, Any

from schemas.errors import ConfigError
from worker.cli.console import print_json, print_page, time_option
from worker.cli.open_runs import open_to_write, takes_requests
from worker.cli.options import LATEST, AtOption, DataOption, DbOption, JsonOption, RunArgument, option
from worker.cli.rebuilt import rebuilt_run


async def reflect(
    run: RunArgument = LATEST,
    at: AtOption = None,
    data: DataOption = None,
    out: Annotated[
        Path | None,
        option(metavar="DIR", help="Write the report below DIR/reports as JSON, Markdown and page."),
    ] = None,
    db: DbOption = None,
    json: JsonOption = False,
) -> None:
    """Reflect on a run now: a report like those of its slow loop, which changes nothing in it."""
    moment = None if at is None else time_option(at, "--at")
    entry = await _reflect(run, moment, data, db)
    if out is not None:
        from worker.cli.out_folder import OutFolder, report_files

        OutFolder(out).write_files(report_files([entry]))
    if json:
        print_json(entry)
        return
    from worker.pages.report_markdown import report_markdown

    print_page(report_markdown(entry))
    print_page(f"\nNext: `thinktwice replan {entry['report_id']}` asks the judge.\n")


async def _reflect(run: str, at: int | None, data: Path | None, db: str | None) -> dict[str, Any]:
    from worker.review.replanning import report_now

    async with open_to_write(db, run) as (store, record):
        if takes_requests(record):
            raise ConfigError(
                f"run {record.run_id} trades: `thinktwice replan {record.run_id}` asks it for a report and a "
                "verdict"
            )
        request, report = await report_now(await rebuilt_run(store, record, data, at))
        await store.on_demand.put(record.run_id, request, report)
    return {
        "run_id": record.run_id,
        "report_id": report.content_hash[:16],
        "request_hash": report.request_hash,
        "report": json_text.loads(report.canonical_text()),
        "verdict": None,
        "evidence": [],
    }
