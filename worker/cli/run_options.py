"""Options of the commands that make or check a run: its bars, who decides, where replies come from."""

from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any

import typer

from schemas.settings import Settings
from services.text.given_files import check_kind
from worker.cli.options import DbOption, argument, option
from worker.settings import ResolvedSettings, load_settings

ConfigArgument = Annotated[Path | None, argument(metavar="CONFIG", help="TOML file; none is read unasked.")]
FreshLedgerOption = Annotated[
    bool,
    typer.Option("--fresh-ledger", help="Do not count what was tried on these bars before; reports say so."),
]
FullOption = Annotated[bool, typer.Option("--full", help="Print every counter of the run.")]
LogFormatOption = Annotated[
    str | None, option("--log-format", help="Logs on stderr: console or json. [console]")
]
ColumnsOption = Annotated[
    str | None, option(metavar="ROLE=NAME,...", help="Columns of the file, such as time=Fecha,open=Apertura.")
]

# What `takes` adds to a command, by its name in it.
OPTIONS: dict[str, Any] = {
    "data": Annotated[str | None, option(help="CSV or Parquet file of bars. [embedded daily bars]")],
    "symbols": Annotated[str | None, option(help="Symbols, separated by commas. [all of the data]")],
    "timeframe": Annotated[
        str | None, option(help="Such as 1m, 30m, 2h, 1d, 1w, 1M. [as the bars are spaced]")
    ],
    "resample": Annotated[str | None, option(help="Trade longer bars made of these, such as 30m or 1w.")],
    "playbooks": Annotated[
        str | None, option(metavar="WHAT", help="Folder, file or name of playbooks. [those of thinktwice]")
    ],
    "cash": Annotated[float | None, option(help="Starting cash, in quote currency. [100000]")],
    "fee": Annotated[float | None, option(metavar="BPS", help="Fee a side, of notional. [5]")],
    "slippage": Annotated[float | None, option(metavar="BPS", help="Slippage a side. [2]")],
    "start": Annotated[str | None, option("--from", metavar="TIME", help="First bar label, UTC.")],
    "end": Annotated[
        str | None, option("--to", metavar="TIME", help="Last bar label, UTC; a date is its whole day.")
    ],
    "tz": Annotated[str | None, option(metavar="ZONE", help="Zone of times in the file that have none.")],
    "date_format": Annotated[
        str | None, option(metavar="FORM", help="How times of the file are written, such as %d.%m.%Y.")
    ],
    "decimal": Annotated[str | None, option(metavar=".|,", help="What marks decimals in the file.")],
    "columns": ColumnsOption,
    "label": Annotated[str | None, option(help="What a label means: open or close of its bar. [open]")],
    "strategist": Annotated[str | None, option(help="Who proposes: rules or model. [rules]")],
    "reflection": Annotated[str | None, option(help="off, deterministic or full. [deterministic]")],
    "model": Annotated[
        str | None, option(metavar="PROVIDER/NAME", help="Model of every seat, such as ollama/qwen3:8b.")
    ],
    "llm": Annotated[str | None, option(help="Replies of the model: live, record or replay. [live]")],
    "cassette": Annotated[
        str | None, option(metavar="FILE", help="Replies to record into, or to replay without a key.")
    ],
    "seed": Annotated[int | None, option(help="Seed of every draw. [0]")],
    "db": DbOption,
}
FILE = ("tz", "date_format", "decimal", "columns")
RUN = (
    "symbols",
    "timeframe",
    "start",
    "end",
    *FILE,
    "label",
    "strategist",
    "reflection",
    "model",
    "llm",
    "cassette",
)

# The setting that each option sets, and the option as it is typed, by its name in a command.
SET_BY = {
    "seed": ("seed", "--seed"),
    "symbols": ("data.symbols", "--symbols"),
    "timeframe": ("data.timeframe", "--timeframe"),
    "label": ("data.label", "--label"),
    "resample": ("data.resample", "--resample"),
    "playbooks": ("runtime.playbooks", "--playbooks"),
    "cash": ("account.cash", "--cash"),
    "fee": ("execution.fee_bps", "--fee"),
    "slippage": ("execution.slippage_bps", "--slippage"),
    "strategist": ("policy_loop.strategist", "--strategist"),
    "reflection": ("reflection.mode", "--reflection"),
    "data": ("runtime.data", "--data"),
    "tz": ("runtime.tz", "--tz"),
    "date_format": ("runtime.date_format", "--date-format"),
    "decimal": ("runtime.decimal", "--decimal"),
    "columns": ("runtime.columns", "--columns"),
    "start": ("runtime.start", "--from"),
    "end": ("runtime.end", "--to"),
    "db": ("runtime.db", "--db"),
    "out": ("runtime.out", "--out"),
    "model": ("llm.model", "--model"),
    "llm": ("runtime.llm", "--llm"),
    "cassette": ("runtime.cassette", "--cassette"),
    "log_format": ("runtime.operations.log_format", "--log-format"),
}


def takes(*names: str, after: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A command with these options behind one of its own; `run_settings` reads them from its context."""

    def taking(command: Callable[..., Any]) -> Callable[..., Any]:
        own = list(signature(command).parameters.values())
        place = [parameter.name for parameter in own].index(after) + 1
        added = [Parameter(name, own[0].kind, default=None, annotation=OPTIONS[name]) for name in names]

        @wraps(command)
        def take(**given: Any) -> Any:
            return command(**{name: value for name, value in given.items() if name not in names})

        shown = signature(command).replace(parameters=[*own[:place], *added, *own[place:]])
        take.__signature__ = shown  # type: ignore[attr-defined]  # what typer asks a function for
        return take

    return taking


def run_settings(context: typer.Context) -> ResolvedSettings:
    """The settings in force, with what the configuration file and the options of a command say.

    Raises:
        ConfigError: an unreadable file, an unknown name, or a value that does not fit.
        DataError: the bars are a pipe or a device, which is said before anything large is loaded.
    """
    given = context.params
    values = {name: given[name] for name in SET_BY if name in given}
    if isinstance(symbols := values.get("symbols"), str):
        values["symbols"] = [name.strip() for name in symbols.split(",") if name.strip()]
    flags = {SET_BY[name][0]: (SET_BY[name][1], value) for name, value in values.items()}
    resolved = load_settings(given["config"], flags=flags)
    if (bars := resolved.settings.runtime.data) is not None:
        with suppress(OSError):  # what is not there is said by whoever opens it
            check_kind(Path(bars))
    return resolved


def run_name(config: Path | None, settings: Settings, feed: str = "replay") -> str:
    """What a new run is called: by its configuration file, else by its bars, or the exchange of its feed."""
    if config is not None:
        return config.stem
    if settings.runtime.data is not None:
        return Path(settings.runtime.data).stem
    return "embedded" if feed == "replay" else feed
