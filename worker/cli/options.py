"""Options that several commands share: of a run, its bars and its models.

`takes` adds options that set a setting to a command; `run_settings` reads them.
"""

import getpass
from collections.abc import Callable
from contextlib import suppress
from functools import partial, wraps
from inspect import Parameter, signature
from pathlib import Path
from runpy import run_path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from schemas.errors import ConfigError
from schemas.settings import Settings
from services.model_calls.quoting import visible
from services.text.given_files import check_kind
from worker.settings import ResolvedSettings, load_settings

if TYPE_CHECKING:
    pass

LONGEST_NAME = 64

# An option or argument whose help says its default in brackets, where it has one.
option, argument = partial(typer.Option, show_default=False), partial(typer.Argument, show_default=False)

# One grammar: a command about a run takes it first; one about anything else takes that first, and --run.
LATEST = "latest"
RUN_HELP = "Run id, a unique prefix of one, or 'latest'. [latest]"
RunArgument = Annotated[str, argument(metavar="RUN", help=RUN_HELP)]
RunOption = Annotated[str, option("--run", metavar="RUN", help=RUN_HELP)]
Db = Annotated[
    str | None,
    option(
        "--db",
        metavar="URL",
        help="Store: sqlite:///PATH or postgresql://USER:PASSWORD@HOST/DATABASE. [sqlite:///thinktwice.db]",
    ),
]
Data = Annotated[Path | None, option(help="The run's bar file, if it lies elsewhere now.")]
CONSOLE_PORT = 8_766
Port = Annotated[int, typer.Option(metavar="N", min=0, max=65_535, help="Port; 0 takes any.")]
AllowHost = Annotated[
    list[str] | None,
    option("--allow-host", metavar="NAME", help="A further name that requests may call us by."),
]
Console = Annotated[bool, typer.Option("--console", help="Serve the console on 127.0.0.1 while it runs.")]
ConsolePort = Annotated[
    int | None,
    option(
        "--console-port",
        metavar="N",
        min=0,
        max=65_535,
        help=f"Serve the console at this port; 0 takes any. [{CONSOLE_PORT}]",
    ),
]
At = Annotated[
    str | None,
    option(metavar="TIME", help="As of the last bar that had closed at TIME (ISO, UTC). [the end]"),
]
By = Annotated[str | None, option("--by", metavar="NAME", help="Who decides. [the user's name]")]
Write = Annotated[
    Path | None,
    option(
        metavar="DIR",
        help="Write the playbooks that result as TOML files there; runtime.playbooks reads them.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
Config = Annotated[Path | None, argument(metavar="CONFIG", help="TOML file; none is read unasked.")]
ModelConfig = Annotated[
    Path | None,
    option("--config", metavar="FILE", help="TOML file: a model, and other settings."),
]
Clock = Annotated[
    str | None,
    option("--at", metavar="TIME", help="The clock: nothing that was known later is told. [the newest row]"),
]
FreshLedger = Annotated[
    bool,
    typer.Option("--fresh-ledger", help="Do not count what was tried on these bars before; reports say so."),
]
Full = Annotated[bool, typer.Option("--full", help="Print every counter of the run.")]
LogFormat = Annotated[str | None, option("--log-format", help="Logs on stderr: console or json. [console]")]

Columns = Annotated[
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
    "columns": Columns,
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
    "db": Db,
}
FILE = ("tz", "date_format", "decimal", "columns")
MODELS = ("model", "llm", "cassette")
RUN = ("symbols", "timeframe", "start", "end", *FILE, "label", "strategist", "reflection", *MODELS)

# The setting that each option sets, by its name in a command.
SET_BY = {
    **{name: f"data.{name}" for name in ("symbols", "timeframe", "label", "resample")},
    **{name: f"runtime.{name}" for name in ("data", *FILE, "start", "end", "playbooks", "db", "out")},
    **{name: f"runtime.{name}" for name in ("llm", "cassette")},
    "seed": "seed",
    "cash": "account.cash",
    "fee": "execution.fee_bps",
    "slippage": "execution.slippage_bps",
    "strategist": "policy_loop.strategist",
    "reflection": "reflection.mode",
    "model": "llm.model",
    "log_format": "runtime.operations.log_format",
}
TYPED = {"start": "--from", "end": "--to"}  # the others are typed by their names
Features = Annotated[
    Path | None, option(metavar="FILE.py", help="Python that is run for its own features, see tt.feature.")
]


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
    flags = {
        SET_BY[name]: (TYPED.get(name, f"--{name.replace('_', '-')}"), value)
        for name, value in values.items()
    }
    resolved = load_settings(given.get("config"), flags=flags)
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


def define_features(path: Path | None) -> None:
    """Run a file of the operator's for the features that it gives a name by `tt.feature`.

    Raises:
        ConfigError: it cannot be read or run.
    """
    if path is None:
        return
    if path.suffix != ".py" or not path.is_file():
        raise ConfigError(f"--features {str(path)!r}: give a Python file, .py, that calls tt.feature")
    try:
        run_path(str(path))
    except Exception as error:
        raise ConfigError(f"--features {str(path)!r}: {type(error).__name__}: {error}") from error


class OnceCommand(TyperCommand):
    """A command whose options are given once; of two values one would be passed over without a word."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments.

        Raises:
            ConfigError: an option that takes one value, or a switch with its other half, is there twice.
        """
        given = [param for param in self.make_parser(ctx).parse_args(args=[*args])[2] if param.opts]
        for place, param in enumerate(given):
            if param in given[:place] and not getattr(param, "multiple", True):
                words = "/".join([*param.opts, *param.secondary_opts])
                raise ConfigError(f"{words} is given twice: give it once")
        found: list[str] = super().parse_args(ctx, args)
        return found


def console_at(console: bool, port: int | None) -> int | None:
    """Where a process serves its console; None: nowhere.

    Raises:
        ConfigError: its extra is not installed.
    """
    if not console and port is None:
        return None
    require_console()
    return CONSOLE_PORT if port is None else port


def require_console() -> None:
    """Refuse where the extra of the console is not installed.

    Raises:
        ConfigError: it names the package that is missing, and how it is installed.
    """
    try:
        import argon2  # noqa: F401
        import fastapi  # noqa: F401
        import sse_starlette  # noqa: F401
    except ImportError as error:
        raise ConfigError(
            f"the console needs the extra package `console` ({error.name} is missing): "
            "`pip install 'thinktwice[console]'` or `uv sync --extra console`"
        ) from error


def operator_name(by: str | None = None) -> str:
    """Who decides, by the name of an option or of the user.

    Raises:
        ConfigError: it is empty, too long, or holds what cannot be seen.
    """
    return visible_name(getpass.getuser() if by is None else by, "--by", "letters")


def visible_name(text: str, option: str, letters: str = "visible letters") -> str:
    """A name as it is given to an option, without blanks around it.

    Raises:
        ConfigError: it is empty, too long, or holds what cannot be seen.
    """
    name = text.strip()
    if not name or len(name) > LONGEST_NAME or visible(name) != name:
        raise ConfigError(f"{option} {name[:LONGEST_NAME]!r}: give a name of 1 to {LONGEST_NAME} {letters}")
    return name
