"""Clusters of resolved trades by declared keys, from columns: which rows share a key, on three levels."""

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from services.high_level.hypotheses import hypothesis
from services.statistics.calendar_units import Integers
from services.statistics.multiplicity import WHOLE


class ClusterRows(NamedTuple):
    """Rows, rising, that share a key; `regime` and `timeframe` None on the levels above.

    `tested_as` is the name of the hypothesis in the family. A cell with one timeframe shares its own, because
    both levels hold the same trades.
    """

    playbook_id: str
    regime: str | None
    timeframe: str | None
    tested_as: str
    rows: Integers


class Keys(NamedTuple):
    """Playbook, regime and timeframe of each row, (n,), as codes into their names."""

    playbook: Integers
    regime: Integers
    timeframe: Integers
    names: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]

    @classmethod
    def of(cls, playbook: Sequence[str], regime: Sequence[str], timeframe: Sequence[str]) -> "Keys":
        """From the names of each row."""
        playbooks, regimes, timeframes = (
            tuple(sorted(set(names))) for names in (playbook, regime, timeframe)
        )
        return cls(
            _codes(playbook, playbooks),
            _codes(regime, regimes),
            _codes(timeframe, timeframes),
            (playbooks, regimes, timeframes),
        )


def _codes(names: Sequence[str], known: tuple[str, ...]) -> Integers:
    places = {name: place for place, name in enumerate(known)}
    return np.array([places[name] for name in names], dtype=np.int64)


def cluster_rows(
    keys: Keys, entry_ns: Integers, starts: Mapping[str, int] = MappingProxyType({})
) -> tuple[ClusterRows, ...]:
    """Clusters of all three levels, sorted by key.

    `starts` holds the entry, ns, from which trades are tested in all open cells of a playbook together
    (`playbook|*`) and in single cells (`playbook|regime`); all of them where it says nothing.
    """
    groups: dict[tuple[str, str, str], list[Integers]] = {}
    for (playbook, regime, frame), rows in _rows_by_key(keys).items():
        for key in {(playbook, "", ""), (playbook, regime, ""), (playbook, regime, frame)}:
            groups.setdefault(key, []).append(rows)
    kept = {}
    for key, parts in sorted(groups.items()):
        rows = np.sort(np.concatenate(parts), kind="stable")  # which merges what rises already
        start = starts.get(hypothesis(key[0], key[1] or WHOLE))
        rows = rows if start is None else rows[entry_ns[rows] >= start]
        if len(rows):
            kept[key] = rows
    frames = Counter((playbook, regime) for playbook, regime, frame in kept if frame)
    return tuple(
        ClusterRows(
            playbook,
            regime or None,
            frame or None,
            hypothesis(playbook, regime or None, frame if frame and frames[playbook, regime] > 1 else None),
            rows,
        )
        for (playbook, regime, frame), rows in kept.items()
    )


def _rows_by_key(keys: Keys) -> dict[tuple[str, str, str], Integers]:
    """Rows of each playbook x regime x timeframe, by name."""
    playbooks, regimes, timeframes = keys.names
    code = (keys.playbook * len(regimes) + keys.regime) * len(timeframes) + keys.timeframe
    order = np.argsort(code, kind="stable")
    found, starts = np.unique(code[order], return_index=True)
    cells = {}
    for value, rows in zip(found.tolist(), np.split(order, starts)[1:], strict=True):
        cell, frame = divmod(value, len(timeframes))
        playbook, regime = divmod(cell, len(regimes))
        cells[playbooks[playbook], regimes[regime], timeframes[frame]] = rows
    return cells
