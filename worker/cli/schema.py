"""`thinktwice schema`: the JSON schema of a contract, or the names of all of them."""

from typing import Annotated

import typer

from worker.cli.console import print_json, stdout_console
from worker.cli.options import JsonOption


def schema(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Contract; without one, all are listed.", show_default=False),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Print the JSON schema of a contract, or list every contract."""
    from worker.contracts import contract_named, contracts, schema_of, summary_of

    if name is not None:
        print_json(schema_of(contract_named(name)))
        return
    listing = [
        {"name": one, "module": kind.__module__, "summary": summary_of(kind)}
        for one, kind in contracts().items()
    ]
    if json:
        print_json(listing)
    else:
        _render(listing)


def _render(listing: list[dict[str, str]]) -> None:
    console = stdout_console()
    width = max(len(one["name"]) for one in listing)
    for one in listing:
        console.print(f"{one['name']:<{width}}  {one['summary']}", soft_wrap=True)
