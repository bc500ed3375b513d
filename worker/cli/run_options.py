"""Options of the commands that make or check a run: its bars, who decides, where replies come from."""

from pathlib import Path
from typing import Annotated

import typer

from schemas.settings import Settings
from worker.cli.options import argument, option
from worker.settings import ResolvedSettings, load_settings

ConfigArgument = Annotated[Path | None, argument(metavar="CONFIG", help="TOML file; none is read unasked.")]
DataOption = Annotated[str | None, option(help="CSV or Parquet file of bars. [embedded daily bars]")]
SymbolsOption = Annotated[str | None, option(help="Symbols, separated by commas. [all of the data]")]
TimeframeOption = Annotated[str | None, option(help="1m, 5m, 15m, 1h, 4h or 1d. [as the bars are spaced]")]
FromOption = Annotated[str | None, option("--from", metavar="TIME", help="First bar label, UTC.")]
ToOption = Annotated[
    str | None, option("--to", metavar="TIME", help="Last bar label, UTC; a date is its whole day.")
]
ZoneOption = Annotated[str | None, option(metavar="ZONE", help="Zone of times in the file that have none.")]
LabelOption = Annotated[str | None, option(help="What a label means: open or close of its bar. [open]")]
StrategistOption = Annotated[str | None, option(help="Who proposes: rules or model. [rules]")]
ReflectionOption = Annotated[str | None, option(help="off, deterministic or full. [deterministic]")]
RepliesOption = Annotated[str | None, option(help="Replies of the model: live, record or replay. [live]")]
CassetteOption = Annotated[
    str | None, option(metavar="FILE", help="Replies to record into, or to replay without a key.")
]
FreshLedgerOption = Annotated[
    bool,
    typer.Option("--fresh-ledger", help="Do not count what was tried on these bars before; reports say so."),
]
SeedOption = Annotated[int | None, option(help="Seed of every draw. [0]")]
FullOption = Annotated[bool, typer.Option("--full", help="Print every counter of the run.")]
LogFormatOption = Annotated[
    str | None, option("--log-format", help="Logs on stderr: console or json. [console]")
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


def run_name(config: Path | None, settings: Settings, feed: str = "replay") -> str:
    """What a new run is called: by its configuration file, else by its bars, or the exchange of its feed."""
    if config is not None:
        return config.stem
    if settings.runtime.data is not None:
        return Path(settings.runtime.data).stem
    return "embedded" if feed == "replay" else feed
