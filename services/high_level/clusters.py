"""Clusters of resolved trades by declared keys, on columns: of the slow loop's episodes and of any table.

The keys are playbook, playbook x regime, and playbook x regime x timeframe; the family that is tested is read
from the playbook files, before any outcome. Columns, because a table may have a million rows.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from types import MappingProxyType

import numpy as np

from schemas.episode import Episode
from schemas.playbook import PlaybookDefinition
from schemas.settings import GateSettings
from schemas.slow_reflection import OpenEntry
from schemas.timeframes import TIMEFRAME_SECONDS
from services.high_level.hypotheses import hypothesis
from services.high_level.trade_bounds import bounds_of, reference_of, trades_of
from services.statistics.blocks import Blocks, Floats, Trades, blocks_of, winsorise
from services.statistics.calendar_units import BlockUnit, Integers, block_unit, unit_numbers
from services.statistics.drift import Decay, detect_decay
from services.statistics.multiplicity import WHOLE
from services.statistics.sample import Sample
from services.statistics.shrinkage import Shrunken, shrunken_means
from services.statistics.track import Bounds, Company, Track

_EXIT = attrgetter("exit_label", "known_at", "episode_id")
Starts = Mapping[str, int]
EVERY_TRADE: Starts = MappingProxyType({})
EVERY_ROW = slice(None)
Key = tuple[str, str | None, str | None]


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
        symbol: codes into `symbols`; None where the table does not tell.
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
    symbol: Integers | None = None
    symbols: tuple[str, ...] = ("",)
    otherwise: "TradeTable | None" = None

    @classmethod
    def of(cls, episodes: Sequence[Episode], references: Mapping[str, float]) -> "TradeTable":
        """Episodes as rows, in their order; `references` by playbook."""
        trades = trades_of(episodes)
        playbook, playbooks = _codes([item.playbook_id for item in episodes])
        regime, regimes = _codes([item.regime for item in episodes])
        timeframe, timeframes = _codes([item.timeframe for item in episodes])
        bar_s = tuple(TIMEFRAME_SECONDS[name] for name in timeframes)
        held = tuple(references[name] for name in playbooks)
        keys = playbook, regime, timeframe, playbooks, regimes, timeframes
        symbol, symbols = _codes([item.symbol for item in episodes])
        return cls(trades.entry_ns, trades.exit_ns, trades.r, *keys, bar_s, held, symbol, symbols)

    def __len__(self) -> int:
        return len(self.r)

    def trades(self, rows: Integers | slice = EVERY_ROW) -> Trades:
        """Times and outcomes of some rows, or of all."""
        return Trades(self.entry_ns[rows], self.exit_ns[rows], self.r[rows])

    def cells(self) -> Iterator[tuple[Key, Integers]]:
        """Rows of each playbook x regime x timeframe, rising."""
        code = (self.playbook * len(self.regimes) + self.regime) * len(self.timeframes) + self.timeframe
        order = np.argsort(code, kind="stable")
        found, starts = np.unique(code[order], return_index=True)
        for value, rows in zip(found.tolist(), np.split(order, starts)[1:], strict=True):
            cell, frame = divmod(value, len(self.timeframes))
            playbook, regime = divmod(cell, len(self.regimes))
            yield (self.playbooks[playbook], self.regimes[regime], self.timeframes[frame]), rows


def _codes(names: Sequence[str]) -> tuple[Integers, tuple[str, ...]]:
    known = sorted(set(names))
    places = {name: place for place, name in enumerate(known)}
    return np.array([places[name] for name in names], dtype=np.int64), tuple(known)


@dataclass(frozen=True)
class Cluster:
    """Rows, rising, of a table that share a key, and the path of their evidence.

    `regime` and `timeframe` are None on the levels above. `tested_as` is the name of the hypothesis in the
    family: a cell with one timeframe shares its own and its path, because both levels hold the same trades.
    """

    playbook_id: str
    regime: str | None
    timeframe: str | None
    tested_as: str
    rows: Integers
    track: Track

    @property
    def key(self) -> Key:
        """Playbook, regime and timeframe."""
        return self.playbook_id, self.regime, self.timeframe


@dataclass(frozen=True)
class Pooled:
    """A cluster's shrunken mean, and of each symbol on the lowest level."""

    mean: Shrunken
    symbols: dict[str, Shrunken]


def pool(clusters: Sequence[Cluster], table: TradeTable, gate: GateSettings, at_ns: int) -> dict[Key, Pooled]:
    """Shrunken means of the clusters of a table from what had exited at a time, ns; see `shrunken_means`."""
    lowest = [item.rows for item in clusters if item.timeframe is not None]
    rows = np.sort(np.concatenate(lowest))
    rows = rows[table.exit_ns[rows] <= at_ns]
    symbol = np.zeros(len(table), dtype=np.int64) if table.symbol is None else table.symbol
    held = np.array(table.references)
    r = winsorise(table.r[rows], gate.winsor_low, gate.winsor_high) - held[table.playbook[rows]]
    keys = [codes[rows] for codes in (table.playbook, table.regime, table.timeframe, symbol)]
    pooled: dict[Key, Pooled] = {}
    for group, found in shrunken_means(r, unit_numbers(table.entry_ns[rows], "month"), keys).items():
        if not group:
            continue
        mean, lower, upper, n, alone = found
        of = float(held[group[0]])
        at = [round(value + of, 6) for value in (mean, lower, upper, alone)]
        own = Shrunken(at[0], at[1], at[2], n, at[3])
        regime = table.regimes[group[1]] if len(group) > 1 else None
        frame = table.timeframes[group[2]] if len(group) > 2 else None
        key = table.playbooks[group[0]], regime, frame
        if len(group) < len(keys):
            pooled[key] = Pooled(own, {})
        else:
            pooled[key].symbols[table.symbols[group[3]]] = own
    return pooled


def build_clusters(
    table: TradeTable,
    gate: GateSettings,
    bounds: Mapping[str, Bounds] | None = None,
    starts: Starts = EVERY_TRADE,
    open_entries: Sequence[OpenEntry] = (),
    declared: Collection[str] = (),
) -> tuple[Cluster, ...]:
    """Clusters of all three levels, sorted by key; a block of one is by the longest bars that it holds.

    Args:
        table: the trades.
        gate: settings of the gate.
        bounds: what is known of the R of single playbooks' trades.
        starts: entries, ns, from which trades are tested in all open cells of a playbook together
            (`playbook|*`) and in single cells (`playbook|regime`); all of them where it says nothing.
        open_entries: positions whose trades will belong to a cluster.
        declared: hypotheses that are tested with the clusters, whether they have trades or not.

    Raises:
        DataError: a reference does not lie strictly between the winsor bounds.
    """
    bar_s = np.array(table.bar_s, dtype=np.int64)
    references = dict(zip(table.playbooks, table.references, strict=True))
    usual = Bounds(gate.winsor_low, gate.winsor_high, strict=gate.strict)
    groups = list(_group_rows(table, starts))
    registered = len({*declared, *(tested_as for _, tested_as, _ in groups)})
    accounts: dict[BlockUnit, Blocks] = {}
    playbooks: dict[tuple[str, BlockUnit], Track] = {}
    found: list[Cluster] = []
    # Rows that may be one trade share their cell: both readings have the same clusters in the same order.
    others = iter(
        () if table.otherwise is None else build_clusters(table.otherwise, gate, bounds, declared=declared)
    )
    for (playbook, regime, frame), tested_as, rows in groups:
        otherwise = None if table.otherwise is None else next(others).track
        if found and found[-1].tested_as == tested_as:  # a cell of one timeframe: the same trades
            track = found[-1].track
        else:
            unit = block_unit(gate.block, int(bar_s[table.timeframe[rows]].max()))
            if unit not in accounts:
                first = min((entry.entry_label for entry in open_entries), default=None)
                accounts[unit] = blocks_of(table.trades(), unit, gate.winsor_low, gate.winsor_high, first)
            track = Track(
                table.trades(rows),
                unit,
                references[playbook],
                replace((bounds or {}).get(playbook, usual), registered=registered),
                _find_first_entry(open_entries, playbook, regime),
                Company(accounts[unit], playbooks.get((playbook, unit))),
                otherwise,
            )
            if regime is None:  # the playbook comes before its cells
                playbooks[playbook, unit] = track
        found.append(Cluster(playbook, regime, frame, tested_as, rows, track))
    return tuple(found)


def _find_first_entry(open_entries: Sequence[OpenEntry], playbook: str, regime: str | None) -> int | None:
    held = [
        entry.entry_label
        for entry in open_entries
        if entry.playbook_id == playbook and regime in (None, entry.regime)
    ]
    return min(held, default=None)


def _sort_key(group: tuple[Key, object]) -> tuple[str, ...]:
    return tuple(name or "" for name in group[0])


def _group_rows(table: TradeTable, starts: Starts) -> Iterator[tuple[Key, str, Integers]]:
    groups: dict[Key, list[Integers]] = {}
    for (playbook, regime, frame), rows in table.cells():
        for key in ((playbook, None, None), (playbook, regime, None), (playbook, regime, frame)):
            groups.setdefault(key, []).append(rows)
    kept = {}
    for (playbook, regime, frame), parts in sorted(groups.items(), key=_sort_key):
        rows = np.sort(np.concatenate(parts), kind="stable")  # which merges what rises already
        start = starts.get(hypothesis(playbook, regime or WHOLE))
        rows = rows if start is None else rows[table.entry_ns[rows] >= start]
        if len(rows):
            kept[playbook, regime, frame] = rows
    frames = Counter((playbook, regime) for playbook, regime, frame in kept if frame is not None)
    for (playbook, regime, frame), rows in kept.items():
        own = frame if frames[playbook, regime] > 1 else None
        yield (playbook, regime, frame), hypothesis(playbook, regime, own), rows


@dataclass(frozen=True)
class Measure:
    """One cluster and what was measured on it, before any grade; a table of trades has no `episodes`."""

    cluster: Cluster
    sample: Sample
    episodes: tuple[Episode, ...] = ()
    pooled: Pooled | None = None

    @cached_property
    def decay(self) -> Decay | None:
        """The e-detector for a loss of a whole playbook in this epoch; None for its cells."""
        if self.cluster.regime is not None:
            return None
        return detect_decay(self.cluster.track.decay[: self.sample.blocks])


def by_exit(episodes: Iterable[Episode]) -> tuple[Episode, ...]:
    """Episodes in order of exit, ties by the time they were known and by id."""
    return tuple(sorted(episodes, key=_EXIT))


def measure(
    episodes: Sequence[Episode],
    gate: GateSettings,
    definitions: Mapping[str, PlaybookDefinition],
    at_ns: int,
    *,
    starts: Starts = EVERY_TRADE,
    open_entries: Sequence[OpenEntry] = (),
    most_trades: int = 0,
    declared: Collection[str] = (),
) -> tuple[Measure, ...]:
    """Blocks, means and e-values of the clusters of episodes at a time, sorted by key.

    `starts`, `open_entries` and `declared` as `build_clusters` takes them; `most_trades` of a block are all
    that the account allows.
    """
    ordered = by_exit(episodes)
    books = {name: definitions.get(name) for name in {item.playbook_id for item in ordered}}
    table = TradeTable.of(ordered, {name: reference_of(book, gate) for name, book in books.items()})
    bounds = {name: bounds_of(book, gate, most_trades) for name, book in books.items()}
    found: list[Measure] = []
    clusters = build_clusters(table, gate, bounds, starts, open_entries, declared)
    pooled = pool(clusters, table, gate, at_ns) if clusters else {}
    for cluster in clusters:
        if found and found[-1].cluster.track is cluster.track:
            found.append(replace(found[-1], cluster=cluster, pooled=pooled.get(cluster.key)))
        else:
            trades = tuple(ordered[row] for row in cluster.rows)
            found.append(Measure(cluster, cluster.track.at(at_ns), trades, pooled.get(cluster.key)))
    return tuple(found)
