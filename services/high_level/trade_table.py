"""Clusters of a table of resolved trades, whoever made them: the slow loop's three levels, from columns.

Columns instead of episodes, because such a table may have a million rows.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from schemas.settings import GateSettings
from services.high_level.cluster_rows import ClusterRows, Keys, cluster_rows
from services.statistics.blocks import Blocks, Floats, Trades
from services.statistics.calendar_units import Integers, block_unit
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
        otherwise: the same table where it is not known which rows are one trade, read the other way; a claim
            stands where both readings prove it.
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
    otherwise: "TradeTable | None" = None

    def __len__(self) -> int:
        return len(self.r)

    def clusters(self) -> Iterator[tuple[ClusterRows, Trades]]:
        """Rows and trades of each cluster, sorted by key."""
        names = self.playbooks, self.regimes, self.timeframes
        keys = Keys(self.playbook, self.regime, self.timeframe, names)
        for found in cluster_rows(keys, self.entry_ns):
            rows = found.rows
            yield found, Trades(self.entry_ns[rows], self.exit_ns[rows], self.r[rows])


@dataclass(frozen=True)
class TableCluster:
    """One cluster of a table; see `ClusterRows`."""

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
    bar_s = np.array(table.bar_s)
    references = dict(zip(table.playbooks, table.references, strict=True))
    usual = Bounds(gate.winsor_low, gate.winsor_high, strict=gate.strict)
    teachers: dict[str, Blocks] = {}
    found = []
    # Rows that may be one trade share their cell: both readings have the same clusters in the same order.
    others = iter(clusters_of(table.otherwise, gate, bounds) if table.otherwise is not None else ())
    for (playbook, regime, timeframe, tested_as, rows), trades in table.clusters():
        track = Track(
            trades,
            block_unit(
                gate.block, int(bar_s[table.timeframe[rows]].max())
            ),  # by the longest bars that it holds
            references[playbook],
            (bounds or {}).get(playbook, usual),
            teacher=teachers.get(playbook),
            otherwise=next(others).track if table.otherwise is not None else None,
        )
        teachers.setdefault(playbook, track.blocks)  # the playbook comes before its cells
        found.append(TableCluster(playbook, regime, timeframe, tested_as, track))
    return tuple(found)
