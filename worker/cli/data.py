"""`thinktwice data`: fetch the history of an exchange into a bar file, and look at what a bar file holds."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from schemas.errors import ConfigError, FeedError
from services.model_calls.quoting import count_noun
from worker.cli.console import complain, print_document, say
from worker.cli.options import JsonOption, argument, option
from worker.cli.run_options import ColumnsOption
from worker.runs.interrupts import Interrupts, run_async
from worker.runs.progress import progress_bar
from worker.settings import load_settings

if TYPE_CHECKING:
    from worker.feeds.history.fetch import FetchRequest

MOST_LISTED = 100
CTRL_C = 130
LABELS = {"split": "SPLIT", "step": "STEP", "stretch": "DOUBTFUL", "start": "DOUBTFUL", "tick": "DOUBTFUL"}
LABELS |= {"flat": "FLAT", "repeated": "REPEATED", "far": "FAR"}
PROBLEMS = (
    ("conflicts", "CONFLICT", "label(s) with two different bars"),
    ("invalid", "INVALID", "bar(s) dropped"),
    ("off_grid", "OFF GRID", "bar(s) dropped"),
    ("future", "FUTURE", "label(s) beyond now, dropped"),
)

app = typer.Typer(help="Fetch bars from an exchange, and look at bar files.", rich_markup_mode=None)
Start = Annotated[
    str, typer.Option("--from", metavar="TIME", help="First label, UTC; a date is its first instant.")
]
End = Annotated[
    str | None, option("--to", metavar="TIME", help="Last label, UTC, inclusive. [the last bar that is over]")
]
Gateway = Annotated[str | None, option(metavar="URL", help="Gateway in place of the hosts of the exchange.")]


@app.callback()
def data() -> None:
    """Fetch bars from an exchange, and look at bar files."""


@app.command("fetch")
def fetch(
    exchange: Annotated[str, argument(metavar="EXCHANGE", help="Its name in ccxt, or yahoo or stooq.")],
    symbols: Annotated[list[str], argument(metavar="SYMBOL", help="For example BTC/USDT, or AAPL.")],
    start: Start,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="A .csv, .csv.gz or .parquet file.")],
    timeframe: Annotated[
        str | None, option(metavar="TF", help="Such as 1m, 30m, 2h or 1d. [1h; 1d of yahoo and stooq]")
    ] = None,
    end: End = None,
    rest_url: Gateway = None,
    replace: Annotated[bool, typer.Option("--replace", help="The file may be there already.")] = False,
    json: JsonOption = False,
) -> None:
    """Download the public history of an exchange; run it again to go on after an interruption."""
    from worker.feeds.history.fetch import FetchRequest
    from worker.feeds.history.public_source import FORMATS, TIMEFRAME

    spacing = timeframe or (TIMEFRAME if exchange in FORMATS else "1h")
    request = FetchRequest(exchange, tuple(dict.fromkeys(symbols)), spacing, start, end, out, replace)
    try:
        found = _fetch(request, rest_url)
    except KeyboardInterrupt:
        complain(f"stopped: what came so far is kept in '{out}.part'; run the same command again to go on")
        raise typer.Exit(CTRL_C) from None
    print_document(found, json, _render_fetch)
    if not found["ok"]:
        raise typer.Exit(1)


@app.command("check")
def check(
    file: Annotated[Path, argument(metavar="FILE", help="Bar file, or a folder of such.")],
    tz: Annotated[str | None, typer.Option(metavar="ZONE", help="Zone of times without one.")] = None,
    date_format: Annotated[
        str | None, option(metavar="FORM", help="How times are written, such as %d.%m.%Y.")
    ] = None,
    decimal: Annotated[str | None, option(metavar=".|,", help="What marks decimals.")] = None,
    columns: ColumnsOption = None,
    label: Annotated[
        str, typer.Option(metavar="open|close", help="Whether times name opens or closes.")
    ] = "open",
    json: JsonOption = False,
) -> None:
    """Say what a bar file holds; a file that --data would refuse is refused in the same words."""
    if label not in ("open", "close"):
        raise ConfigError(f"--label {label!r} is neither 'open' nor 'close'")
    from worker.feeds.files.files import load_bar_file
    from worker.feeds.history.check import describe_bars

    flags = {
        "runtime.date_format": ("--date-format", date_format),
        "runtime.decimal": ("--decimal", decimal),
        "runtime.columns": ("--columns", columns),
    }
    runtime = load_settings(flags=flags).settings.runtime
    bars = load_bar_file(
        file,
        tz=tz,
        date_format=runtime.date_format,
        decimal=runtime.decimal,
        columns=runtime.columns,
        label=cast(Literal["open", "close"], label),
        most=runtime.max_bytes,
    )
    found = describe_bars(bars)
    print_document({"file": str(file), **found}, json, _render_check)


def _fetch(request: "FetchRequest", rest_url: str | None) -> dict[str, Any]:
    from worker.feeds.ccxt.history import Patience
    from worker.feeds.history.fetch import FetchShell, fetch

    flags = {"runtime.feed.exchange.rest_url": ("--rest-url", rest_url)}
    settings = load_settings(flags=flags).settings.runtime.feed.exchange

    def tell(error: FeedError, seconds: float) -> None:
        complain(f"{error}; trying again in {seconds:g} s")

    patience = Patience(most_s=settings.backoff_max_s, tell=tell)
    with progress_bar("fetch", Interrupts()) as draw:
        return run_async(fetch(request, FetchShell(settings, patience, draw)))


def _render_fetch(found: dict[str, Any]) -> None:
    kept = f", {found['resumed_bars']:,} of them from before" if found["resumed_bars"] else ""
    say(
        "file",
        f"{found['file']}: {count_noun(found['bars'], 'bar')} of {found['timeframe']} "
        f"from {found['exchange']}{kept}",
    )
    for symbol, told in found["symbols"].items():
        say(
            symbol,
            f"{told['from']} to {told['to']}   {count_noun(told['bars'], 'bar')}   "
            f"{told['missing_bars']:,} missing",
        )
        if told["missing_bars"]:
            say(
                "FEWER",
                f"{told['bars']:,} of the {count_noun(told['asked_bars'], 'bar')} that were asked for came",
            )
        for gap in told["gaps"][:5]:
            say("", f"no bars {gap['from']} to {gap['to']} ({gap['bars']:,})")
        if len(told["gaps"]) > 5:
            say("", "and more gaps; --json lists them")
        _render_problems(told)
    for symbol, labels in found["changed_when_read_again"].items():
        say("CHANGED", f"{symbol}: read again, {len(labels)} bar(s) differ, first {labels[0]}")
    if found["ok"]:
        say("checked", "on the grid, each once, plausible; samples read again are the same")


def _render_problems(one: dict[str, Any]) -> None:
    if one["duplicates"]:
        say("", f"{one['duplicates']:,} repeated row(s), dropped")
    for name, label, told in PROBLEMS:
        if found := one[name]:
            first = f"{found[0]['time']}: {found[0]['reason']}" if name == "invalid" else found[0]
            say(label, f"{_count(found)} {told}, first {first}")


def _count(listed: list[Any]) -> str:
    """How many there are; a list ends after a hundred."""
    return f"{len(listed)} or more" if len(listed) == MOST_LISTED else str(len(listed))


def _render_check(found: dict[str, Any]) -> None:
    say(
        "file",
        f"{found['file']}: {count_noun(found['bars'], 'bar')} of {found['timeframe']}, "
        f"labelled by their {found['label']}",
    )
    for symbol, told in found["symbols"].items():
        say(
            symbol,
            f"{told['from']} to {told['to']}   {count_noun(told['bars'], 'bar')}   "
            f"{told['lowest']:g} to {told['highest']:g}",
        )
        for doubt in told["doubts"]:
            say(LABELS[doubt["kind"]], doubt["text"])
        if told["unsettled"]:
            _render_unsettled(told)
        for part in told["missing"]:
            say(
                "MISSING",
                f"no bar {part['from']} to {part['to']} ({count_noun(part['days'], 'day')} of trading)",
            )
        if told["weekdays"]:
            closed = f", never on {', '.join(told['closed_days'])}" if told["closed_days"] else ""
            say("calendar", f"{' '.join(told['weekdays'])}{closed}")
        if told["absent_while_others_trade"]:
            say("", f"{told['absent_while_others_trade']:,} bar(s) absent while others trade")
        if told["pauses"]:
            say("", f"{told['pauses']:,} pause(s) longer than a bar; the longest:")
        for pause in told["longest_pauses"]:
            say("", f"  after {pause['after']} until {pause['until']} ({count_noun(pause['bars'], 'bar')})")
        for name, words in (("without_volume", "volume"), ("without_movement", "movement")):
            if told[name]:
                say("", f"{told[name]:,} bar(s) without {words}")
        if told["jumps"]:
            say("", f"close changes by more than half at {', '.join(told['jumps'])}")
        if told["off_phase"]:
            say("OFF PHASE", f"{told['off_phase']:,} label(s), first {', '.join(told['first_off_phase'])}")
    for note in found["notes"]:
        say("note", note)
    say("checked", "`--data` reads this file")


def _render_unsettled(one: dict[str, Any]) -> None:
    say(
        "UNSETTLED",
        f"{one['unsettled']:,} bar(s) outside the band that data.plausibility = 'always' takes, first "
        f"{one['first_unsettled'][0]}: the doubts before them agree on no level",
    )
