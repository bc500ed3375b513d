"""What one world of bars says of the slow loop: the same bars with it on and off, at the default settings."""

import asyncio
from math import log1p

from benchmarks.gate_worlds.engine.world import KINDS, PARAMETER, PLAYBOOK, EngineWorld
from schemas.playbook import PlaybookVersion
from schemas.settings import GateSettings, Settings
from schemas.vocabulary import VersionState
from services.journal.sinks import DiscardingSink
from services.journal.writer import JournalWriter
from services.playbooks.lifecycle import PROVEN
from services.statistics.calendar_units import unit_numbers, unit_of_timeframe
from trading_core.bars import BarSeries
from worker.runs.backtest import run_backtest
from worker.runs.run_result import RunResult
from worker.studies.ablation.arms import Arm, settings_of

HARM = -0.01
LEAST = 1e-6
JOURNAL_ROWS = 100_000

Outcome = dict[str, float | None]


def on_and_off(world: EngineWorld, gate: GateSettings, key: list[int]) -> Outcome:
    """One run of a world with the slow loop, one without, and one with the right side from the start.

    Differences are on less off. Returns are logarithms of the end over the start, so that what is won early
    does not multiply what is won late. The third run says what the planted fault costs without the slow
    loop; a world without a fault has none.
    """
    bars = world.draw(sum(number << 40 * place for place, number in enumerate(key)))
    on = _run(world, bars, gate, Arm.DETERMINISTIC)
    off = _run(world, bars, gate, Arm.FAST_ONLY)
    performance, before = (run.document("", "")["performance"] for run in (on, off))
    gain = _log_return(on) - _log_return(off)
    promoted = _promoted_at(world, on.versions)
    found: Outcome = {
        "promoted": float(promoted is not None),
        "blocks until": None if promoted is None else _blocks_between(bars, int(bars.times[0]), promoted),
        "harm": float(gain < HARM),
        "acted": float(_first_action(on.versions) is not None),
        "blocks after": _blocks_after(on),
        "log return": gain,
        "sharpe": _difference(performance["sharpe"], before["sharpe"]),
        "R": _difference(performance["expectancy_r"], before["expectancy_r"]),
        "fault": None,
    }
    if world.kind == "planted":
        right = _run(world, bars, gate, Arm.FAST_ONLY, right=True)
        found["fault"] = _log_return(right) - _log_return(off)
    return found


def _run(
    world: EngineWorld, bars: BarSeries, gate: GateSettings, arm: Arm, *, right: bool = False
) -> RunResult:
    """One session whose journal is not kept and whose trials no ledger counts."""
    settings = settings_of(arm, Settings(gate=gate))
    journal = JournalWriter(DiscardingSink(), JOURNAL_ROWS)
    return asyncio.run(run_backtest(settings, bars, journal, definitions=world.playbooks(right=right)))


def _promoted_at(world: EngineWorld, versions: tuple[PlaybookVersion, ...]) -> int | None:
    """When the other side, proven in shadow, came into force, ns; None where it never did."""
    other = -KINDS[world.kind][1]
    found = (
        version.since
        for version in versions
        if version.definition.id == PLAYBOOK
        and version.state is VersionState.ACTIVE
        and version.reason == PROVEN
        and version.definition.parameters[PARAMETER].value == other
    )
    return min(found, default=None)


def _first_action(versions: tuple[PlaybookVersion, ...]) -> int | None:
    """When the first action of a verdict was carried out, ns."""
    return min((version.since for version in versions if version.action_id is not None), default=None)


def _blocks_after(run: RunResult) -> float | None:
    first = _first_action(run.versions)
    return None if first is None else _blocks_between(run.bars, first, int(run.bars.times[-1]))


def _blocks_between(bars: BarSeries, *times: int) -> float:
    start, end = unit_numbers(list(times), unit_of_timeframe("", bars.timeframe))
    return float(end - start)


def _log_return(run: RunResult) -> float:
    """Logarithm of what is left of the cash at the start; of a millionth where less is left."""
    return log1p(max(run.document("", "")["performance"]["net_return"], LEAST - 1.0))


def _difference(on: float | None, off: float | None) -> float | None:
    return None if on is None or off is None else on - off
