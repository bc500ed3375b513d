"""`thinktwice worlds`: the gate on worlds with known truth, the worst of them first."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from schemas.errors import ConfigError, nearest
from services.model_calls.quoting import count_noun
from worker.cli.console import print_document, print_table, stdout_console
from worker.cli.options import JsonOption, option
from worker.pages.tables import made_table
from worker.runs.interrupts import Interrupts
from worker.runs.progress import progress_bar

if TYPE_CHECKING:
    from rich.table import Table

    from worker.studies.worlds.table import Row

RUNS, SESSIONS = 100, 10
BETWEEN = {"runs": (1, 100_000), "years": (1, 50), "processes": (0, 1_024), "seed": (0, 2**63 - 1)}
PARAMETERS = (
    "per_week", "target", "symbols", "rho", "rows_low", "rows_high", "phi", "share", "span", "win_hours",
    "loss_hours", "tail", "sigma", "cost", "crash_every", "crash_trades", "calm", "timeframe", "blocks",
    "pull",
)  # fmt: skip
LARGEST_MEAN = 5.0
_SHAPE = "--years, --edge, --planted or --later"
SHOWN_RULES = ("count and win rate", "weekly t-tests")


def worlds(
    context: typer.Context,
    world: Annotated[
        str | None, option(metavar="KIND", help="One kind of world alone, with the options below.")
    ] = None,
    only: Annotated[
        str | None, option(metavar="GROUP", help="One group of the table alone, all its rows.")
    ] = None,
    whole: Annotated[bool, typer.Option("--whole", help="Every row of the table; hours.")] = False,
    engine: Annotated[
        bool,
        typer.Option("--engine", help="Whole sessions on bars, slow loop on against off; minutes a run."),
    ] = False,
    runs: Annotated[
        int | None, option(metavar="N", help="Runs of each world: 100, with --engine 10 seeds.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="S", help="Same seed, same output.")] = 1,
    years: Annotated[
        int | None, option(help="Length of a run of --world, years. [1; 2 where an edge is lost]")
    ] = None,
    edge: Annotated[float | None, option(metavar="R", help="True mean of every cell of --world. [0]")] = None,
    planted: Annotated[
        float | None, option(metavar="R", help="True mean of its first cell: how often is it found?")
    ] = None,
    later: Annotated[
        float | None, option(metavar="R", help="The same from half of the run on: is the decay seen?")
    ] = None,
    per_week: Annotated[float | None, option(help="Bets a week and cell.")] = None,
    target: Annotated[float | None, option(metavar="R", help="R of a winner against -1R; 0: t(3).")] = None,
    symbols: Annotated[int | None, option(help="Trades that share a bet.")] = None,
    rho: Annotated[float | None, option(help="Their correlation.")] = None,
    rows_low: Annotated[int | None, option(help="Fewest rows of one bet.")] = None,
    rows_high: Annotated[int | None, option(help="Most rows of one bet.")] = None,
    phi: Annotated[float | None, option(help="Autocorrelation of outcomes.")] = None,
    share: Annotated[float | None, option(help="Variance share of a shock.")] = None,
    span: Annotated[int | None, option(help="Weeks of one shock.")] = None,
    win_hours: Annotated[float | None, option(help="Until a winner exits.")] = None,
    loss_hours: Annotated[float | None, option(help="Until a loser exits.")] = None,
    tail: Annotated[float | None, option(help="Index of winners' Lomax tail.")] = None,
    sigma: Annotated[float | None, option(help="Of lognormal outcomes.")] = None,
    cost: Annotated[float | None, option(metavar="R", help="Cost of a trade.")] = None,
    crash_every: Annotated[float | None, option(help="Weeks between crashes.")] = None,
    crash_trades: Annotated[int | None, option(help="Trades of a crash.")] = None,
    calm: Annotated[float | None, option(metavar="R", help="Mean of a calm week.")] = None,
    timeframe: Annotated[str | None, option(help="Of the bars of --engine.")] = None,
    blocks: Annotated[int | None, option(help="Length of a run of --engine.")] = None,
    pull: Annotated[float | None, option(help="Of prices to their anchor in a bar of --engine.")] = None,
    processes: Annotated[int, typer.Option(help="0: one for each core. Figures do not depend on it.")] = 0,
    resume: Annotated[
        str | None, option(metavar="FILE", help="Keep finished parts here, and go on with those it holds.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Measure false flags, power, intervals and decay of the gate where the truth is known.

    Without options: a small table in about a minute. With --world one kind alone, with its parameters; what
    a kind does not take is refused. Every rate has its standard error, and holds when it is within two of
    them of its target. --engine runs whole sessions at the default settings on bars whose truth is known
    (null, planted, turned), with the slow loop on and off; a difference holds when all of its 95 % interval
    is beyond its target. Ctrl-C keeps what --resume has.
    """
    params = context.params
    set_ = {name: params[name] for name in PARAMETERS if params[name] is not None}
    runs = (SESSIONS if engine else RUNS) if runs is None else runs
    _refuse({**params, "runs": runs})
    shape = {"years": years, "edge": edge, "first": planted, "later": later}
    rest = {name: value for name, value in shape.items() if value is not None}
    rows = _session_rows(world, only, whole, set_, rest) if engine else _rows(world, only, whole, set_, rest)
    document = _measure(rows, runs, seed, processes, resume, engine=engine)
    print_document(document, json, _render)


def _refuse(given: dict[str, Any]) -> None:
    """Refuse what draws no world, and means that no stop and target could have.

    Raises:
        ConfigError: it names the option and what it takes.
    """
    for name, (low, high) in BETWEEN.items():
        if given[name] is not None and not low <= given[name] <= high:
            raise ConfigError(f"--{name} {given[name]!r} is not between {low} and {high}")
    for name in ("edge", "planted", "later"):
        if given[name] is not None and not -1.0 < given[name] < LARGEST_MEAN:
            raise ConfigError(f"--{name} {given[name]!r} is not between -1 and {LARGEST_MEAN:g}")


def _rows(
    world: str | None, only: str | None, whole: bool, given: dict[str, Any], rest: dict[str, Any]
) -> list["Row"]:
    """The rows that the options ask for.

    Raises:
        ConfigError: options that do not go together, or a name that is none.
    """
    from worker.studies.worlds.table import GROUPS, own_rows, rows

    if world is None:
        return _rows_of_table(rows(), GROUPS, only, whole, given, rest)
    _refuse_rows(only, whole)
    return list(own_rows(world, given, rest))


def _session_rows(
    world: str | None, only: str | None, whole: bool, given: dict[str, Any], rest: dict[str, Any]
) -> list["Row"]:
    """The rows of whole sessions that the options ask for.

    Raises:
        ConfigError: options that do not go together, or a name that is none.
    """
    from worker.studies.worlds.engine.rows import GROUPS, engine_rows, own_engine_rows
    from worker.studies.worlds.engine.world import TAKES

    for name in [*(name for name in given if name not in TAKES), *rest]:
        told = _SHAPE if name in rest else f"--{name.replace('_', '-')}"
        raise ConfigError(f"{told}: a world of --engine takes --{', --'.join(TAKES)}")
    if world is None:
        return _rows_of_table(engine_rows(), GROUPS, only, whole, given, rest)
    _refuse_rows(only, whole)
    return list(own_engine_rows(world, given))


def _refuse_rows(only: str | None, whole: bool) -> None:
    if only is not None or whole:
        raise ConfigError("--world is one world; --only and --whole are rows of the table: give one of them")


def _rows_of_table(
    table: Sequence["Row"],
    groups: Sequence[str],
    only: str | None,
    whole: bool,
    given: dict[str, Any],
    rest: dict[str, Any],
) -> list["Row"]:
    """The quick rows of a table, one group of it or all.

    Raises:
        ConfigError: a parameter of one world, or a group that is none.
    """
    if given or rest:
        told = f"--{next(iter(given)).replace('_', '-')}" if given else _SHAPE
        raise ConfigError(f"{told} is about one world: name it with --world")
    if only is not None and only not in groups:
        raise ConfigError(f"--only {only!r} is not one of {', '.join(groups)}.{nearest(only, groups)}")
    chosen = [row for row in table if only in (None, row.group)]
    return chosen if whole or only is not None else [row for row in chosen if row.quick]


def _measure(
    rows: list["Row"], runs: int, seed: int, processes: int, resume: str | None, *, engine: bool
) -> dict[str, Any]:
    from schemas.settings import GateSettings
    from worker.studies.worlds.figures import document_of
    from worker.studies.worlds.runs import KeptParts, cores, gate_hash, measure_rows

    gate = GateSettings()
    kept = KeptParts(None if resume is None else Path(resume), seed, gate, engine=engine)
    doing = "running sessions," if engine else "drawing worlds,"
    with Interrupts("part") as interrupts, progress_bar(doing, interrupts, unit="runs") as tell:
        found = measure_rows(rows, runs, seed, gate, processes or cores(), kept, tell)
    return document_of(rows, found, runs, seed, gate_hash(gate, engine=engine))


def _render(document: dict[str, Any]) -> None:
    console = stdout_console()
    console.print(headline(document), soft_wrap=True)
    for group in dict.fromkeys(row["group"] for row in document["rows"]):
        console.print()
        print_table(_table(group, [row for row in document["rows"] if row["group"] == group]))


def headline(document: dict[str, Any]) -> str:
    """The worst null world, and what does not hold."""
    parts = []
    worst = document["worst"]
    if worst is not None:
        told = f"{_percent(worst['rate'])} (se {_percent(worst['se'])}) of its runs"
        parts.append(f"worst null world: {worst['world']}, flagged in {told}")
    missed = len(document["broken"])
    held = f"{document['targets'] - missed} of {document['targets']} targets hold"
    parts.append(held if document["targets"] else "no target is set for this world")
    if missed:
        parts.append(
            "not: " + "; ".join(f"{figure['figure']} in {figure['world']}" for figure in document["broken"])
        )
    return f"{'; '.join(parts)} ({count_noun(document['runs'], 'run')} a world, seed {document['seed']})"


def _table(group: str, found: list[dict[str, Any]]) -> "Table":
    from rich.table import Column

    heads = (Column("world"), *(Column(name, justify="right") for name in columns(found)))
    rows = (cells_of(row, found) for row in found)
    return made_table(heads, rows, title=group, title_justify="left", pad_edge=False)


def columns(found: list[dict[str, Any]]) -> list[str]:
    """Heads of the figures of one group, after the world's name."""
    parts = ("rates", "differences", "medians")
    return list(dict.fromkeys(name for part in parts for row in found for name in row[part]))


def cells_of(row: dict[str, Any], found: list[dict[str, Any]]) -> list[str]:
    """One row: the world's name and its figures."""
    name = f"{row['world']} (held out)" if row["held_out"] else row["world"]
    return [name, *(_cell(row, column) for column in columns(found))]


def _cell(row: dict[str, Any], name: str) -> str:
    if name in row["medians"]:
        value = row["medians"][name]
        return "-" if value is None else f"{value:.3g}"
    if name in row["differences"]:
        return _difference(row["differences"][name])
    rate = row["rates"].get(name)
    if rate is None or rate["rate"] is None:
        return "-"
    if name in SHOWN_RULES:
        return _percent(rate["rate"])
    return f"{_percent(rate['rate'])} ± {100.0 * rate['se']:.1f}{_verdict(rate)}"


def _difference(one: dict[str, Any]) -> str:
    if one["mean"] is None:
        return "-"
    told = f"{one['mean']:+.2f}"
    if one["lower"] is not None:
        told += f" [{one['lower']:+.2f}, {one['upper']:+.2f}]"
    if "target" not in one:
        return told
    return f"{told} (> {one['target']:.2g}{'' if one['holds'] else ', MISSED'})"


def _verdict(rate: dict[str, Any]) -> str:
    if "target" not in rate:
        return ""
    bound = f"{'>=' if rate['at_least'] else '<='} {100.0 * rate['target']:g}"
    return f" ({bound}{'' if rate['holds'] else ', MISSED'})"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100.0 * share:.1f} %"
