"""`thinktwice config show`: the settings in force, each with where its value came from."""

import json as json_text
from pathlib import Path
from typing import Annotated, Any

import typer

from worker.cli.console import print_json, stdout_console
from worker.cli.options import JsonOption, argument
from worker.settings import ResolvedSettings, load_settings

app = typer.Typer(help="Look at the configuration.", rich_markup_mode=None)


@app.callback()
def config() -> None:
    """Look at the configuration."""


@app.command("show")
def show(
    config: Annotated[Path | None, argument(metavar="CONFIG", help="TOML file.")] = None,
    json: JsonOption = False,
) -> None:
    """Print the resolved settings, where each value came from, and the hash of all but `runtime`."""
    resolved = load_settings(config)
    from services.store import mask_password

    settings = {
        key: {"value": mask_password(value) if key == "runtime.db" else value, "origin": origin}
        for key, value, origin in resolved.rows()
    }
    if json:
        print_json({"config_hash": resolved.settings.config_hash, "settings": settings})
    else:
        _render(resolved, settings)


def _render(resolved: ResolvedSettings, settings: dict[str, dict[str, Any]]) -> None:
    from rich.table import Table

    table = Table("setting", "value", "from", box=None, padding=(0, 2, 0, 0))
    for key, entry in settings.items():
        style = None if entry["origin"] == "default" else "bold"
        table.add_row(key, json_text.dumps(entry["value"], ensure_ascii=False), entry["origin"], style=style)
    console = stdout_console()
    console.print(table)
    console.print(f"config_hash {resolved.settings.config_hash}", soft_wrap=True)
