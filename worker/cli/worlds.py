"""`thinktwice worlds`: the gate on worlds with known truth, beside rules that are often used instead."""

from typing import Annotated, Any

import typer

from schemas.errors import ConfigError, nearest
from worker.cli.console import print_json, stdout_console
from worker.cli.options import JsonOption
from worker.cli.progress import step

KINDS = ("null", "planted", "decay")
CELLS = ("12", "24")
RULES = {"count_and_win_rate": "any by win rate", "weekly_t_tests": "any by t-tests"}
MOST_RUNS = 100_000


def worlds(
    kind: Annotated[
        str | None, typer.Option(help="null, planted or decay. [all three]", show_default=False)
    ] = None,
    runs: Annotated[int, typer.Option(metavar="N", help="Years drawn of each world.")] = 200,
    seed: Annotated[int, typer.Option(metavar="S", help="Same seed, same output.")] = 1,
    cells: Annotated[
        str | None, typer.Option(help="Cells of a world: 12 or 24. [both]", show_default=False)
    ] = None,
    json: JsonOption = False,
) -> None:
    """Measure false recommendations, power and delay of the gate where the truth is known."""
    _refuse(kind, runs, seed, cells)
    from worker.worlds.rates import KINDS as ALL
    from worker.worlds.rates import measure_all

    chosen = [one for one in ALL if kind in (None, one)]
    sizes = [int(size) for size in CELLS if cells in (None, size)]
    with step("drawing worlds") as tell:
        document = measure_all(chosen, sizes, runs, seed, tell)
    if json:
        print_json(document)
    else:
        _render(document)


def _refuse(kind: str | None, runs: int, seed: int, cells: str | None) -> None:
    """Refuse what draws no world.

    Raises:
        ConfigError: it names the option and what it takes.
    """
    if kind is not None and kind not in KINDS:
        raise ConfigError(f"--kind {kind!r} is not one of {', '.join(KINDS)}.{nearest(kind, KINDS)}")
    if cells is not None and cells not in CELLS:
        raise ConfigError(f"--cells {cells!r} is not 12 or 24")
    if not 1 <= runs <= MOST_RUNS:
        raise ConfigError(f"--runs {runs!r} is not between 1 and {MOST_RUNS}")
    if not 0 <= seed < 2**63:
        raise ConfigError(f"--seed {seed!r} is not between 0 and 2^63 - 1")


def _render(document: dict[str, Any]) -> None:
    console = stdout_console()
    console.print(headline(document), soft_wrap=True)
    for kind in document["kinds"]:
        console.print()
        console.print(_table(kind, [one for one in document["worlds"] if one["kind"] == kind]))


def headline(document: dict[str, Any]) -> str:
    """The worst null and the power on independent t(3) outcomes, as far as they were drawn."""
    kinds = document["kinds"]
    parts = []
    if "null" in kinds:
        worst = _percent(kinds["null"]["any_structural_rate"])
        parts.append(f"worst null world: a structural recommendation in {worst} of years")
    if "planted" in kinds:
        found = f"-0.4R a trade found in {_percent(kinds['planted']['power'])} of t(3) years"
        parts.append(f"{found}, after {_number(kinds['planted']['median_delay_trades'])} trades")
    if "decay" in kinds:
        seen = f"decay seen in {_percent(kinds['decay']['power'])} of t(3) runs"
        parts.append(f"{seen}, {_number(kinds['decay']['median_delay_trades'])} trades after it began")
    drawn = f"{document['runs']} runs a world, seed {document['seed']}"
    return f"{'; '.join(parts)} ({drawn}; false share at most {_percent(document['false_share'])})"


def _table(kind: str, found: list[dict[str, Any]]) -> Any:
    from rich.table import Table

    table = Table(title=f"{kind} worlds", title_justify="left", box=None, pad_edge=False)
    table.add_column("world", no_wrap=True)
    for name in columns(kind):
        table.add_column(name, justify="right")
    for world in found:
        table.add_row(*cells_of(world))
    return table


def columns(kind: str) -> list[str]:
    """Heads of the figures of one kind, after the world's name."""
    shared = ["cells", "any structural", "false share", "power", "median delay, trades"]
    if kind == "decay":
        return [*shared, "false alarms", "structural power"]
    return [*shared, *RULES.values()]


def cells_of(world: dict[str, Any]) -> list[str]:
    """One row: the world's name and its figures."""
    row = [world["world"], str(world["cells"])]
    row += [_percent(world[name]) for name in ("any_structural_rate", "false_share", "power")]
    row.append(_number(world["median_delay_trades"]))
    if world["kind"] == "decay":
        return [*row, _percent(world["false_alarm_rate"]), _percent(world["structural_power"])]
    return [*row, *(_percent(world["other_rules"][name]["any_structural_rate"]) for name in RULES)]


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100.0 * share:.1f} %"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:g}"
