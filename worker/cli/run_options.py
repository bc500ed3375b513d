"""Options of the commands that make or check a run: its bars, who decides, where replies come from."""

from pathlib import Path
from typing import Annotated

import typer

ConfigArgument = Annotated[
    Path | None,
    typer.Argument(metavar="CONFIG", help="TOML file; none is read unasked.", show_default=False),
]
DataOption = Annotated[
    str | None,
    typer.Option(help="CSV or Parquet file of bars. [embedded daily bars]", show_default=False),
]
SymbolsOption = Annotated[
    str | None, typer.Option(help="Symbols, separated by commas. [all of the data]", show_default=False)
]
TimeframeOption = Annotated[
    str | None,
    typer.Option(help="1m, 5m, 15m, 1h, 4h or 1d. [as the bars are spaced]", show_default=False),
]
FromOption = Annotated[
    str | None, typer.Option("--from", metavar="TIME", help="First bar label, UTC.", show_default=False)
]
ToOption = Annotated[
    str | None,
    typer.Option(
        "--to", metavar="TIME", help="Last bar label, UTC; a date is its whole day.", show_default=False
    ),
]
ZoneOption = Annotated[
    str | None,
    typer.Option(metavar="ZONE", help="Zone of times in the file that have none.", show_default=False),
]
LabelOption = Annotated[
    str | None,
    typer.Option(help="What a label means: open or close of its bar. [open]", show_default=False),
]
StrategistOption = Annotated[
    str | None, typer.Option(help="Who proposes: rules or model. [rules]", show_default=False)
]
ReflectionOption = Annotated[
    str | None, typer.Option(help="off, deterministic or full. [deterministic]", show_default=False)
]
RepliesOption = Annotated[
    str | None,
    typer.Option(help="Replies of the model: live, record or replay. [live]", show_default=False),
]
CassetteOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", help="Replies to record into, or to replay without a key.", show_default=False
    ),
]
FreshLedgerOption = Annotated[
    bool,
    typer.Option("--fresh-ledger", help="Do not count what was tried on these bars before; reports say so."),
]
SeedOption = Annotated[int | None, typer.Option(help="Seed of every draw. [0]", show_default=False)]
LogFormatOption = Annotated[
    str | None,
    typer.Option("--log-format", help="Logs on stderr: console or json. [console]", show_default=False),
]


def names_of(symbols: str | None) -> list[str] | None:
    """The names in a list separated by commas; None when none is given."""
    return None if symbols is None else [name.strip() for name in symbols.split(",") if name.strip()]
