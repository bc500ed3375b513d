"""`thinktwice config show` and `thinktwice schema`: settings in force, and contracts as JSON schemas."""

import json as json_text
from pathlib import Path
from typing import Annotated, Any

import typer

from schemas.contract_listing import contract_named, contracts, schema_of, summary_of
from worker.cli import options
from worker.cli.options import argument
from worker.cli.printing import print_document, print_json
from worker.pages.text_parts import Part, rows_table
from worker.settings import load_settings

app = typer.Typer(help="Look at the configuration.", rich_markup_mode=None)


@app.callback()
def config() -> None:
    """Look at the configuration."""


@app.command("show")
def show(
    config: Annotated[Path | None, argument(metavar="CONFIG", help="TOML file.")] = None,
    json: options.Json = False,
) -> None:
    """Print the resolved settings, where each value came from, and the hash of all but `runtime`."""
    from services.store import mask_password

    resolved = load_settings(config)
    settings = {
        key: {"value": mask_password(value) if key == "runtime.db" else value, "origin": origin}
        for key, value, origin in resolved.rows()
    }
    document = {"config_hash": resolved.settings.config_hash, "settings": settings}
    print_document(document, json, _describe)


def _describe(document: dict[str, Any]) -> list[Part]:
    columns = {
        "setting": lambda item: item[0],
        "from": lambda item: item[1]["origin"],
        "value": lambda item: json_text.dumps(item[1]["value"], ensure_ascii=False),  # may be long
    }
    return [rows_table(document["settings"].items(), columns), f"config_hash {document['config_hash']}"]


def schema(
    name: Annotated[
        str | None, argument(metavar="NAME", help="Contract; without one, all are listed.")
    ] = None,
    json: options.Json = False,
) -> None:
    """Print the JSON schema of a contract, or list every contract."""
    if name is not None:
        print_json(schema_of(contract_named(name)))
        return
    listing = [
        {"name": contract, "module": kind.__module__, "summary": summary_of(kind)}
        for contract, kind in contracts().items()
    ]
    columns = {"contract": "name", "what it is": "summary"}
    print_document(listing, json, lambda found: [rows_table(found, columns)])
