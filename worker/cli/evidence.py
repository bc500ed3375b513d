"""Commands that ask what is true: of a text, of a conviction, and of a run by tools of evidence."""

import typer

from worker.cli import calibration, deliberate, factcheck, mcp, tools


def add_commands(app: typer.Typer) -> None:
    """Give a program these commands."""
    app.command("factcheck")(factcheck.factcheck)
    app.command("calibration")(calibration.calibration)
    app.command("deliberate")(deliberate.deliberate)
    app.add_typer(mcp.app, name="mcp")
    app.add_typer(tools.app, name="tools")
