"""`thinktwice doctor`: everything a run needs, looked at before it starts; nothing is changed or sent."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from schemas.errors import ConfigError
from schemas.settings import Settings
from worker.cli import options
from worker.cli.options import option
from worker.cli.printing import print_document
from worker.runs.progress import step
from worker.settings import load_settings

if TYPE_CHECKING:
    from worker.doctor.checks import Finding

MARKS = {"ok": "ok", "warning": "WARNING", "failed": "FAILED"}


async def doctor(
    config: options.Config = None,
    feed: Annotated[
        str | None, option(metavar="NAME", help="Look at a feed: replay, csv or ccxt:NAME.")
    ] = None,
    db: options.Db = None,
    network: Annotated[
        bool, typer.Option("--network", help="Ask the exchange of --feed and every model, too.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Check what a run needs: exit 1 when something is missing, with the next step for each."""
    settings, given = _settings(config, db)
    with step("looking at what a run needs"):
        findings = [given, *await _findings(settings, feed, network=network)]
    clean = _redact(settings, findings)
    failed = any(check.state == "failed" for check in clean)
    document = {"ok": not failed, "checks": [vars(check) for check in clean]}
    print_document(document, json, lambda payload: map(_describe, payload["checks"]))
    if failed:
        raise typer.Exit(1)


def _settings(config: Path | None, db: str | None) -> "tuple[Settings, Finding]":
    from worker.doctor.checks import Finding
    from worker.secrets.redaction import holds_password

    try:
        resolved = load_settings(config, flags={"runtime.db": ("--db", db)})
    except ConfigError as error:
        remedy = "mend it; what follows is about the defaults"
        return Settings(), Finding("settings", "failed", str(error), remedy)
    if db is not None and holds_password(db):
        remedy = "give the address in THINKTWICE_RUNTIME__DB"
        return resolved.settings, Finding("settings", "warning", "others see the password of --db", remedy)
    count = f"{len(resolved.origins)} settings differ from the defaults"
    return resolved.settings, Finding("settings", "ok", count)


async def _findings(settings: Settings, feed: str | None, *, network: bool) -> "list[Finding]":
    from worker.doctor import access_checks, checks

    both = (*checks.CHECKS, *access_checks.CHECKS)
    return await checks.run_checks(checks.DoctorContext(settings, dict(os.environ), feed, network), both)


def _redact(settings: Settings, findings: "list[Finding]") -> "list[Finding]":
    from worker.doctor.checks import Finding
    from worker.secrets.redaction import redactor_of

    clean = redactor_of(None, settings.runtime.db).text
    return [
        Finding(
            finding.name, finding.state, clean(finding.found), finding.next_step and clean(finding.next_step)
        )
        for finding in findings
    ]


def _describe(finding: dict[str, Any]) -> str:
    remedy = "" if finding["next_step"] is None else f": {finding['next_step']}"
    return f"{MARKS[finding['state']]:<8} {finding['name']:<15} {finding['found']}{remedy}"
