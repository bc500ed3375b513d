"""Clusters of a table of resolved trades, whoever made them: the slow loop's three levels, from columns.

Columns instead of episodes, because such a table may have a million rows. Keys, order and hypotheses are
those of `services.high_level.clusters`.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from schemas.settings import GateSettings
from services.high_level.hypotheses import hypothesis
from services.statistics.blocks import Blocks, Floats, Trades
from services.statistics.calendar_units import BlockUnit, Integers, block_unit
from services.statistics.track import Bounds, Track


@dataclass(frozen=True)
class TradeTable:
    """Resolved trades as columns (n,), keys as codes into sorted names.

    Attributes:
        entry_ns: entry times, ns UTC.
        exit_ns: exit times; a trade is known from then on.
        r: outcomes in R after costs.
        playbook: codes into `playbooks`; `regime` and `timeframe` likewise.
        bar_s: seconds of a bar of each of `timeframes`.
        references: what trades of each of `playbooks` are held against.
    """

    entry_ns: Integers
    exit_ns: Integers
    r: Floats
    playbook: Integers
    regime: Integers
    timeframe: Integers
    playbooks: tuple[str, ...]
    regimes: tuple[str, ...]
    timeframes: tuple[str, ...]
    bar_s: tuple[int, ...]
    references: tuple[float, ...]

    def __len__(self) -> int:
        return len(self.r)


@dataclass(frozen=True)
class TableCluster:
    """One cluster of a table; see `services.high_level.clusters.Cluster`."""

    playbook_id: str
    regime: str | None
    timeframe: str | None
    tested_as: str
    track: Track


def clusters_of(
    table: TradeTable, gate: GateSettings, bounds: Mapping[str, Bounds] | None = None
) -> tuple[TableCluster, ...]:
    """Clusters of all three levels, sorted by key.

    Args:
        table: the trades.
        gate: settings of the gate.
        bounds: what is known of the R of single playbooks' trades.

    Raises:
        DataError: a reference does not lie strictly between the winsor bounds.
    """
    cells = _rows_by_key(table)
    groups: dict[tuple[str, str, str], list[Integers]] = {}
    for (playbook, regime, frame), rows in cells.items():
        for key in ((playbook, "", ""), (playbook, regime, ""), (playbook, regime, frame)):
            groups.setdefault(key, []).append(rows)
    frames = Counter((playbook, regime) for playbook, regime, _ in cells)
    bar_s = dict(zip(table.timeframes, table.bar_s, strict=True))
    references = dict(zip(table.playbooks, table.references, strict=True))
    usual = Bounds(gate.winsor_low, gate.winsor_high, strict=gate.strict)
    teachers: dict[str, Blocks] = {}
    found = []
    for key, parts in sorted(groups.items()):
        rows = np.concatenate(parts)
        track = Track(
            Trades(table.entry_ns[rows], table.exit_ns[rows], table.r[rows]),
            _unit(gate, key, cells, bar_s),
            references[key[0]],
            (bounds or {}).get(key[0], usual),
            teacher=teachers.get(key[0]),
        )
        teachers.setdefault(key[0], track.blocks)  # the playbook comes before its cells
        tested_as = hypothesis(key[0], key[1] or None, key[2] if key[2] and frames[key[:2]] > 1 else None)
        found.append(TableCluster(key[0], key[1] or None, key[2] or None, tested_as, track))
    return tuple(found)


def _rows_by_key(table: TradeTable) -> dict[tuple[str, str, str], Integers]:
    """Rows of each playbook x regime x timeframe, by name."""
    sizes = len(table.regimes), len(table.timeframes)
    code = (table.playbook * sizes[0] + table.regime) * sizes[1] + table.timeframe
    order = np.argsort(code, kind="stable")
    found, starts = np.unique(code[order], return_index=True)
    cells = {}
    for value, rows in zip(found.tolist(), np.split(order, starts[1:]), strict=True):
        cell, frame = divmod(value, sizes[1])
        playbook, regime = divmod(cell, sizes[0])
        cells[table.playbooks[playbook], table.regimes[regime], table.timeframes[frame]] = rows
    return cells


def _unit(
    gate: GateSettings,
    key: tuple[str, str, str],
    cells: dict[tuple[str, str, str], Integers],
    bar_s: dict[str, int],
) -> BlockUnit:
    """The unit of a cluster, by the longest bars that it holds."""
    below = [
        cell for cell in cells if all(not part or part == own for part, own in zip(key, cell, strict=True))
    ]
    return block_unit(gate.block, max(bar_s[cell[2]] for cell in below))
