"""`thinktwice data`: fetch the history of an exchange into a bar file, and look at what a bar file holds."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from schemas.errors import FeedError
from services.model_calls.quoting import count_noun
from worker.cli import options
from worker.cli.options import FILE, argument, option, run_settings, takes
from worker.cli.printing import complain, print_document
from worker.pages.text_parts import Part
from worker.runs.interrupts import Interrupts, run_async
from worker.runs.progress import progress_bar
from worker.settings import load_settings

if TYPE_CHECKING:
    from worker.feeds.history.fetch import FetchRequest

MOST_LISTED, SHOWN_GAPS = 100, 5
CTRL_C = 130
LABELS = {"split": "SPLIT", "step": "STEP", "stretch": "DOUBTFUL", "start": "DOUBTFUL", "tick": "DOUBTFUL"}
LABELS |= {"flat": "FLAT", "repeated": "REPEATED", "far": "FAR"}
PROBLEMS = (
    ("conflicts", "CONFLICT", "label(s) with two different bars"),
    ("invalid", "INVALID", "bar(s) dropped"),
    ("off_grid", "OFF GRID", "bar(s) dropped"),
    ("future", "FUTURE", "label(s) beyond now, dropped"),
)
COUNTED = {
    "absent_while_others_trade": "bar(s) absent while others trade",
    "without_volume": "bar(s) without volume",
    "without_movement": "bar(s) without movement",
    "pauses": "pause(s) longer than a bar; the longest:",
}

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
    json: options.Json = False,
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
    print_document(found, json, _describe_fetch)
    if not found["ok"]:
        raise typer.Exit(1)


@app.command("check")
@takes(*FILE, "label", after="file")
def check(
    context: typer.Context,
    file: Annotated[Path, argument(metavar="FILE", help="Bar file, or a folder of such.")],
    json: options.Json = False,
) -> None:
    """Say what a bar file holds; a file that --data would refuse is refused in the same words."""
    from worker.feeds.files.files import load_bar_file
    from worker.feeds.files.symbol_rows import Selection
    from worker.feeds.history.check import describe_bars

    settings = run_settings(context).settings
    forms = {name: getattr(settings.runtime, name) for name in FILE}
    bars = load_bar_file(file, Selection(**forms, label=settings.data.label), settings.runtime.max_bytes)
    found = describe_bars(bars)
    print_document({"file": str(file), **found}, json, _describe_file)


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


def _describe_fetch(found: dict[str, Any]) -> Iterator[Part]:
    kept = f", {found['resumed_bars']:,} of them from before" if found["resumed_bars"] else ""
    bars = f"{count_noun(found['bars'], 'bar')} of {found['timeframe']}"
    yield "file", f"{found['file']}: {bars} from {found['exchange']}{kept}"
    for symbol, part in found["symbols"].items():
        count = count_noun(part["bars"], "bar")
        yield symbol, f"{part['from']} to {part['to']}   {count}   {part['missing_bars']:,} missing"
        if part["missing_bars"]:
            request = count_noun(part["asked_bars"], "bar")
            yield "FEWER", f"{part['bars']:,} of the {request} that were asked for came"
        for gap in part["gaps"][:SHOWN_GAPS]:
            yield "", f"no bars {gap['from']} to {gap['to']} ({gap['bars']:,})"
        if len(part["gaps"]) > SHOWN_GAPS:
            yield "", "and more gaps; --json lists them"
        if part["duplicates"]:
            yield "", f"{part['duplicates']:,} repeated row(s), dropped"
        for name, label, words in PROBLEMS:
            if problems := part[name]:
                first = problems[0]
                shown = f"{first['time']}: {first['reason']}" if name == "invalid" else first
                more = " or more" if len(problems) == MOST_LISTED else ""
                yield label, f"{len(problems)}{more} {words}, first {shown}"
    for symbol, labels in found["changed_when_read_again"].items():
        yield "CHANGED", f"{symbol}: read again, {len(labels)} bar(s) differ, first {labels[0]}"
    if found["ok"]:
        yield "checked", "on the grid, each once, plausible; samples read again are the same"


def _describe_file(found: dict[str, Any]) -> Iterator[Part]:
    bars = f"{count_noun(found['bars'], 'bar')} of {found['timeframe']}"
    yield "file", f"{found['file']}: {bars}, labelled by their {found['label']}"
    for symbol, part in found["symbols"].items():
        count = count_noun(part["bars"], "bar")
        span = f"{part['from']} to {part['to']}   {count}   {part['lowest']:g} to {part['highest']:g}"
        yield symbol, span
        yield from _describe_bars(part)
    yield from (("note", note) for note in found["notes"])
    yield "checked", "`--data` reads this file"


def _describe_bars(part: dict[str, Any]) -> Iterator[Part]:
    yield from ((LABELS[doubt["kind"]], doubt["text"]) for doubt in part["doubts"])
    if part["unsettled"]:
        yield (
            "UNSETTLED",
            f"{part['unsettled']:,} bar(s) outside the band that data.plausibility = 'always' takes, first "
            f"{part['first_unsettled'][0]}: the doubts before them agree on no level",
        )
    for gap in part["missing"]:
        days = count_noun(gap["days"], "day")
        yield "MISSING", f"no bar {gap['from']} to {gap['to']} ({days} of trading)"
    if part["weekdays"]:
        closed = f", never on {', '.join(part['closed_days'])}" if part["closed_days"] else ""
        yield "calendar", f"{' '.join(part['weekdays'])}{closed}"
    for name, words in COUNTED.items():
        if part[name]:
            yield "", f"{part[name]:,} {words}"
    for pause in part["longest_pauses"]:
        yield "", f"  after {pause['after']} until {pause['until']} ({count_noun(pause['bars'], 'bar')})"
    if part["jumps"]:
        yield "", f"close changes by more than half at {', '.join(part['jumps'])}"
    if part["off_phase"]:
        yield "OFF PHASE", f"{part['off_phase']:,} label(s), first {', '.join(part['first_off_phase'])}"
