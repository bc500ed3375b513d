"""Options of the commands that make or check a run: its bars, who decides, where replies come from."""

from pathlib import Path
from typing import Annotated

import typer

from worker.settings import ResolvedSettings, load_settings

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

# The setting that each option sets, and the option as it is typed, by its name in a command.
SET_BY = {
    "seed": ("seed", "--seed"),
    "symbols": ("data.symbols", "--symbols"),
    "timeframe": ("data.timeframe", "--timeframe"),
    "label": ("data.label", "--label"),
    "strategist": ("policy_loop.strategist", "--strategist"),
    "reflection": ("reflection.mode", "--reflection"),
    "data": ("runtime.data", "--data"),
    "tz": ("runtime.tz", "--tz"),
    "start": ("runtime.start", "--from"),
    "end": ("runtime.end", "--to"),
    "db": ("runtime.db", "--db"),
    "out": ("runtime.out", "--out"),
    "llm": ("runtime.llm", "--llm"),
    "cassette": ("runtime.cassette", "--cassette"),
    "log_format": ("runtime.operations.log_format", "--log-format"),
}


def run_settings(context: typer.Context) -> ResolvedSettings:
    """The settings in force, with what the configuration file and the options of a command say.

    Raises:
        ConfigError: an unreadable file, an unknown name, or a value that does not fit.
    """
    given = context.params
    values = {name: given[name] for name in SET_BY if name in given}
    if isinstance(symbols := values.get("symbols"), str):
        values["symbols"] = [name.strip() for name in symbols.split(",") if name.strip()]
    flags = {SET_BY[name][0]: (SET_BY[name][1], value) for name, value in values.items()}
    return load_settings(given["config"], flags=flags)
