"""The worlds ask the gate about all looks at once; the gate itself is asked one by one, and both agree."""

from collections.abc import Sequence

import numpy as np
import pytest

from benchmarks.gate_worlds.calendar import CellTrades, week_ends
from benchmarks.gate_worlds.catalogue import REGIMES, World, world_of
from benchmarks.gate_worlds.measures import draw_run
from schemas.settings import GateSettings
from services.high_level.clusters import TradeTable
from services.high_level.table_gate import grade_table
from services.statistics.blocks import GAINING, LOSING
from services.statistics.calendar_units import unit_starts

GATE = GateSettings()
WORLDS = {
    "planted": world_of("independent", {"target": 2.0}, first=-0.6),
    "winning": world_of("symbols", {"target": 3.0, "per_week": 3.0, "symbols": 3}, edge=0.8),
    "slow": world_of("weekends", {"rho": 0.3}, edge=-0.7, years=2),
}


def table_of(world: World, drawn: Sequence[CellTrades], reference: float) -> TradeTable:
    """The trades of every cell, cell after cell; every playbook is held against `reference`."""
    sizes = [len(cell.r) for cell in drawn]
    books, regimes = np.divmod(np.repeat(np.arange(world.cells), sizes), world.regimes)
    return TradeTable(
        entry_ns=np.concatenate([cell.entry_ns for cell in drawn]),
        exit_ns=np.concatenate([cell.exit_ns for cell in drawn]),
        r=np.concatenate([cell.r for cell in drawn]),
        playbook=books,
        regime=regimes,
        timeframe=np.zeros(len(books), dtype=np.int64),
        playbooks=tuple(f"playbook_{index:02d}" for index in range(world.playbooks)),
        regimes=REGIMES[: world.regimes],
        timeframes=("1h",),
        bar_s=(3_600,),
        references=(reference,) * world.playbooks,
    )


@pytest.mark.parametrize("name", sorted(WORLDS))
def test_selections_are_those_of_the_gate_asked_at_every_look(name):
    run = draw_run(WORLDS[name], GATE, [3])
    table = table_of(run.world, run.drawn, GATE.reference_r)
    request = {
        item.cluster.tested_as: item.first_significant_at
        for item in grade_table(table, GATE, run.looks.tolist()).clusters
        if item.first_significant_at is not None
    }
    ever = np.asarray(run.selected.any(axis=2))
    first = {
        hypothesis: int(run.looks[ever[:, index].argmax()])
        for index, hypothesis in enumerate(run.hypotheses.names)
        if ever[:, index].any()
    }
    assert first == request
    assert first


def test_claims_are_told_apart_by_side():
    losing = np.asarray(draw_run(WORLDS["planted"], GATE, [3]).selected.any(axis=(0, 1)))
    gaining = np.asarray(draw_run(WORLDS["winning"], GATE, [3]).selected.any(axis=(0, 1)))
    assert (bool(losing[LOSING]), bool(losing[GAINING])) == (True, False)
    assert (bool(gaining[LOSING]), bool(gaining[GAINING])) == (False, True)


def test_only_what_contradicts_every_week_so_far_is_false():
    planted = draw_run(WORLDS["planted"], GATE, [3])
    assert planted.selected.any()
    assert not planted.false.any()
    winning = draw_run(WORLDS["winning"], GATE, [3])
    assert not winning.false[..., GAINING].any()
    turned = draw_run(world_of("independent", first=0.5, later=-0.9, years=4), GATE, [3])
    assert turned.selected[:, turned.first, LOSING].any()
    assert not turned.false.any()


def test_looks_are_week_ends_of_the_calendar_that_blocks_use():
    run = draw_run(WORLDS["planted"], GATE, [3])
    numbers = run.tracks[0].blocks.numbers
    assert np.array_equal(run.looks, unit_starts(numbers + 1, "week"))
    assert week_ends(52) == tuple(run.looks.tolist())
