"""A table of resolved trades from CSV or Parquet: columns by name, judged row by row.

Nothing is repaired: a value that cannot be used is refused with its file, row, column and the next step. The
`trades.csv` of a run is such a table as it stands.

A bet counts once, however many rows a table has for it. Rows belong together by their `position_id`; else by
symbol, direction, entry and exit, where a table names symbol and direction; else each is a position of its
own. Their R is the mean, weighted by `quantity` where given. Rows that are merely equal stay apart: losers
that stop at exactly -1R are equal, winners are not.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from schemas.errors import DataError, nearest
from services.high_level.clusters import TradeTable
from worker.feeds.files.bar_table import BarTable
from worker.feeds.files.tables import read_table
from worker.feeds.files.times import utc_labels, zone_named
from worker.studies.foreign_trades import Unit, take_rows

REQUIRED = ("playbook", "regime", "timeframe", "entry_time", "exit_time", "r")
OPTIONAL = ("reference", "looks", "no_learn", "position_id", "symbol", "direction", "quantity")
OWN_NAMES = {
    "playbook_id": "playbook",
    "entry_label": "entry_time",
    "exit_label": "exit_time",
}  # of trades.csv
NAMED = ("symbol", "direction")
BY_ID, BY_ORDER, BY_ROW = "position_id", "symbol, direction, entry and exit", "row"
MOST_R = 1e9
TRUE, FALSE = ("true", "1"), ("false", "0")
OUTCOME = "write the outcome in R, or remove the row (an open trade is not resolved)"
QUANTITY = "write how much was traded, or leave the column out"
ONE_POSITION = "give every position an id of its own, or leave the column out"
REFERENCE = "write what the playbook's trades are held against, in R, or leave the column out"
_BAR = re.compile(r"(?P<count>[1-9]\d{0,3})(?P<unit>[smhdwM])")
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800, "M": 2_592_000}
IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Positions:
    """How rows were held together: `by` what, and how many `rows` became how many `positions`.

    Attributes:
        equal: rows that are equal in every column to one before, and count.
        mean: R of the positions.
        mean_otherwise: the same without equal rows, or of the rows that are held together; None where each
            row is a position and no two are equal.
    """

    by: str
    rows: int
    positions: int
    equal: int
    mean: float
    mean_otherwise: float | None

    @property
    def merged(self) -> int:
        """Rows that tell of a position that another row tells of as well."""
        return self.rows - self.positions


@dataclass(frozen=True)
class TradeFile:
    """The trades of a file, and the times of its own looks, if it has any.

    Trades of a no-learn zone teach nothing: they are left out, and counted in `no_learn`; None for a table
    that has no such column.
    """

    trades: TradeTable
    looks: tuple[int, ...] | None
    no_learn: int | None
    positions: Positions
    unit: Unit = Unit()


@dataclass(frozen=True)
class _Columns:
    """Columns of a table by what they hold; each value is judged where it is read, arrays are (n,)."""

    table: BarTable
    where: dict[str, int]
    zone: ZoneInfo | None

    def __contains__(self, name: str) -> bool:
        return name in self.where

    def place(self, name: str, row: int) -> str:
        return f"{self.table.place(row)}, column {self.table.names[self.where[name]]!r}"

    def refuse(self, name: str, bad: npt.NDArray[np.bool_], problem: Callable[[int], str]) -> None:
        """Raise a DataError about the first bad row, if there is one."""
        odd = np.flatnonzero(bad)
        if odd.size:
            raise DataError(f"{self.place(name, int(odd[0]))}: {problem(int(odd[0]))}")

    def times(self, name: str) -> IntArray:
        return utc_labels(self.table.columns[self.where[name]], lambda row: self.place(name, row), self.zone)

    def numbers(self, name: str, advice: str) -> FloatArray:
        values = self.table.numbers(self.where[name])

        def problem(row: int) -> str:
            word = "empty or NaN" if np.isnan(values[row]) else f"{float(values[row])!r}"
            return f"the value is {word}, not a finite number: {advice}"

        self.refuse(name, ~np.isfinite(values), problem)
        return values

    def lower(self, name: str) -> Any:
        """Text without case and outer space, an Arrow array."""
        text = pc.cast(self.table.columns[self.where[name]], pa.string())
        return pc.utf8_lower(pc.utf8_trim_whitespace(text))

    def names(self, name: str) -> tuple[IntArray, tuple[str, ...]]:
        """Codes into sorted names; a name that is empty, or could stand for two clusters, is refused."""
        codes, raw = _encode(self.table.strip_names(self.where[name]))
        self.refuse(
            name,
            np.isin(codes, [place for place, found in enumerate(raw) if found == "" or "|" in found]),
            lambda row: (
                f"{raw[codes[row]]!r} holds '|': use another character"
                if raw[codes[row]]
                else "the name is empty: write one, or remove the row"
            ),
        )
        known = sorted(raw)
        places = {found: place for place, found in enumerate(known)}
        return np.array([places[found] for found in raw], dtype=np.int64)[codes], tuple(known)

    def alike(self, name: str) -> IntArray:
        """Codes that are equal where names differ in case alone."""
        codes, names = self.names(name)
        _, same = np.unique([found.casefold() for found in names], return_inverse=True)
        return np.asarray(same, dtype=np.int64)[codes]

    def symbols(self) -> tuple[IntArray, tuple[str, ...]]:
        """Codes into sorted symbols, whatever their case; a row may leave its own out."""
        codes, raw = _encode(self.lower("symbol"))
        known = sorted({name or "" for name in raw})
        return np.array([known.index(name or "") for name in raw], dtype=np.int64)[codes], tuple(known)

    def timeframes(self) -> tuple[IntArray, tuple[str, ...], tuple[int, ...]]:
        """Codes into labels, the labels, and the seconds of a bar of each; `60m` and `1h` are one label."""
        codes, labels = self.names("timeframe")
        bars = [_BAR.fullmatch(label) for label in labels]
        self.refuse(
            "timeframe",
            np.isin(codes, [place for place, bar in enumerate(bars) if bar is None]),
            lambda row: (
                f"{labels[codes[row]]!r} is no timeframe: write a number and one of {', '.join(_SECONDS)}, "
                "like 15m, 4h or 1d"
            ),
        )
        seconds = [int(bar["count"]) * _SECONDS[bar["unit"]] for bar in bars if bar is not None]
        shortest: dict[int, str] = {}
        for label, lasts in sorted(zip(labels, seconds, strict=True), key=lambda pair: (len(pair[0]), pair)):
            shortest.setdefault(lasts, label)
        kept = sorted((name, lasts) for lasts, name in shortest.items())
        number = np.array([kept.index((shortest[lasts], lasts)) for lasts in seconds], dtype=np.int64)
        return number[codes], tuple(name for name, _ in kept), tuple(lasts for _, lasts in kept)

    def refuse_early(self, name: str, times: IntArray, before: IntArray, words: str, advice: str) -> None:
        """Refuse a time, ns, that lies before another one of its row; `words` has both in its place."""

        def problem(row: int) -> str:
            return f"the {words.format(*_write_times(times[row], before[row]))}{advice}"

        self.refuse(name, times < before, problem)


def _write_times(*times_ns: Any) -> list[str]:
    return [f"{np.datetime64(int(time_ns) // 10**9, 's')!s}Z" for time_ns in times_ns]


def _encode(column: Any) -> tuple[IntArray, list[Any]]:
    encoded: Any = pc.dictionary_encode(column, null_encoding="encode")
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    codes: IntArray = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, encoded.dictionary.to_pylist()


def read_trades(
    given: Path | BarTable,
    tz: str | None,
    reference: float | None,
    usual: dict[str, float],
) -> TradeFile:
    """The resolved trades of a file or a table.

    Args:
        given: CSV (plain or gzip) or Parquet, or its table.
        tz: zone of times that carry none.
        reference: what trades are held against, for all playbooks; None: the column, else `usual`.
        usual: reference of single playbooks; "" holds that of the others.

    Raises:
        DataError: the file cannot be used; it names the place, the column, the value and the next step.
    """
    table = (
        given if isinstance(given, BarTable) else read_table(given, "at least one trade", pick=trade_columns)
    )
    columns = _Columns(table, _columns(table.names, table.path.name), zone_named(tz))
    columns, left_out = _learnable(columns)
    if reference is not None and "reference" in columns:
        raise DataError(
            f"{table.path.name} has a column 'reference': leave --reference out, or remove the column"
        )
    entry, exit_ns = columns.times("entry_time"), columns.times("exit_time")
    advice = ": correct one of them, or remove the row"
    columns.refuse_early("exit_time", exit_ns, entry, "exit {} lies before the entry {}", advice)
    r = _outcomes(columns)
    (books, names), (regimes, cells) = columns.names("playbook"), columns.names("regime")
    frames, labels, bar_s = columns.timeframes()
    held = tuple(usual.get(name, usual[""]) if reference is None else reference for name in names)
    if "reference" in columns:
        held = _references(columns, books, names)
    symbol = columns.symbols() if "symbol" in columns else (None, ("",))
    keys = books, regimes, frames, names, cells, labels
    trades = TradeTable(entry, exit_ns, r, *keys, bar_s, held, *symbol)
    looks = columns.times("looks") if "looks" in columns else None
    if looks is not None:
        advice = ", when the trade was not known: correct one of them, or leave the column out"
        columns.refuse_early("looks", looks, exit_ns, "look {} lies before the exit {}", advice)
    merged, positions = _join_positions(columns, trades, looks)
    own_looks = None if looks is None else tuple(np.unique(looks).tolist())
    return TradeFile(merged, own_looks, left_out, positions)


def _outcomes(columns: _Columns) -> FloatArray:
    values = columns.numbers("r", OUTCOME)
    beyond = f"is more than {MOST_R:,.0f} times what was risked (R is profit / risk at entry): {OUTCOME}"
    columns.refuse("r", np.abs(values) > MOST_R, lambda row: f"{float(values[row])!r} {beyond}")
    return values


def is_whole(names: tuple[str, ...]) -> bool:
    """Whether a table has every column that the gate reads, by its own names."""
    return set(REQUIRED) <= {OWN_NAMES.get(name.strip().lower(), name.strip().lower()) for name in names}


def trade_columns(names: tuple[str, ...], file: str) -> list[int]:
    """Positions of the columns that are read, ascending: all where only equal rows can be one position.

    Raises:
        DataError: a column is missing, or stands there twice.
    """
    where = _columns(names, file)
    says = "position_id" in where or ("symbol" in where and "direction" in where)
    return sorted(where.values()) if says else list(range(len(names)))


def _columns(names: tuple[str, ...], file: str) -> dict[str, int]:
    given = [OWN_NAMES.get(name.strip().lower(), name.strip().lower()) for name in names]
    missing = [name for name in REQUIRED if name not in given]
    if missing:
        have = ", ".join(repr(name) for name in names)
        hint = nearest(missing[0], [name for name in given if name not in REQUIRED])
        raise DataError(
            f"{file}: column {missing[0]!r} is missing: a table of trades has "
            f"{', '.join(REQUIRED)}; this one has {have}.{hint}"
        )
    twice = [name for name in (*REQUIRED, *OPTIONAL) if given.count(name) > 1]
    if twice:
        raise DataError(f"{file}: column {twice[0]!r} stands there twice: keep one of them")
    return {name: given.index(name) for name in (*REQUIRED, *OPTIONAL) if name in given}


def _learnable(columns: _Columns) -> tuple[_Columns, int | None]:
    if "no_learn" not in columns:
        return columns, None
    table, words = columns.table, columns.lower("no_learn")
    left_out, kept = (
        np.asarray(pc.is_in(words, pa.array(known)).to_numpy(zero_copy_only=False), dtype=np.bool_)
        for known in (TRUE, FALSE)
    )
    columns.refuse(
        "no_learn", ~(left_out | kept), lambda row: f"{words[row].as_py()!r} is neither true nor false"
    )
    if not kept.any():
        raise DataError(f"{table.path.name}: every trade is of a no-learn zone: there is nothing to grade")
    return replace(columns, table=take_rows(table, np.flatnonzero(kept))), int(left_out.sum())


def _references(columns: _Columns, books: IntArray, names: tuple[str, ...]) -> tuple[float, ...]:
    values = columns.numbers("reference", REFERENCE)
    _, first = np.unique(books, return_index=True)

    def problem(row: int) -> str:
        other, name = int(first[books[row]]), names[books[row]]
        return (
            f"{float(values[row])!r} differs from {float(values[other])!r} in {columns.table.place(other)}: "
            f"give every trade of {name!r} the same reference"
        )

    columns.refuse("reference", values != values[first][books], problem)
    return tuple(float(value) for value in values[first])


def _join_positions(
    columns: _Columns, trades: TradeTable, looks: IntArray | None
) -> tuple[TradeTable, Positions]:
    """The table with one row for each position, and how rows were held together.

    Only an id says which rows are one position, where they can be one: what is inferred keeps the other
    reading as `otherwise`.
    """
    quantity = _quantities(columns) if "quantity" in columns else None
    if "position_id" in columns:
        by, keys = BY_ID, [columns.names("position_id")[0]]
    elif "symbol" in columns and "direction" in columns:
        named = [columns.alike(name) for name in NAMED]
        by, keys = BY_ORDER, [*named, *_cell(trades).values(), trades.entry_ns, trades.exit_ns]
    else:
        by, keys = BY_ROW, _keys_of_rows(columns, trades, looks, quantity)
    number = number_groups(keys)
    rows, groups = len(number), int(number.max()) + 1
    if rows == groups:
        return trades, Positions(by, rows, rows, 0, _mean(trades), None)
    if by == BY_ID:
        _refuse_mixed(columns, trades, number)
        _refuse_apart(columns, trades, number)
    merged = merge(trades, number, quantity)
    if by == BY_ROW:
        kept = Positions(by, rows, rows, rows - groups, _mean(trades), _mean(merged))
        return replace(trades, otherwise=merged), kept
    joined = Positions(by, rows, groups, 0, _mean(merged), _mean(trades))
    return merged if by == BY_ID else replace(merged, otherwise=trades), joined


def _mean(trades: TradeTable) -> float:
    return round(float(np.sort(trades.r).mean()), 9)  # in value order: the order of rows reaches no bit


def _quantities(columns: _Columns) -> FloatArray:
    values = columns.numbers("quantity", QUANTITY)
    text = "the quantity {!r} is not above 0: " + QUANTITY
    columns.refuse("quantity", values <= 0.0, lambda row: text.format(float(values[row])))
    return values


def _cell(trades: TradeTable) -> dict[str, IntArray]:
    return {"playbook": trades.playbook, "regime": trades.regime, "timeframe": trades.timeframe}


def _keys_of_rows(
    columns: _Columns, trades: TradeTable, looks: IntArray | None, quantity: FloatArray | None
) -> list[IntArray]:
    """Every column as keys (n,): what the gate reads by its value, the rest as it is written."""
    read = {**_cell(trades), "entry_time": trades.entry_ns, "exit_time": trades.exit_ns, "r": _bits(trades.r)}
    read |= {} if looks is None else {"looks": looks}
    read |= {} if quantity is None else {"quantity": _bits(quantity)}
    known = {columns.where[name]: key for name, key in read.items()}
    same = {columns.where.get(name) for name in ("reference", "no_learn")}  # in every row of a playbook
    return [
        known[place] if place in known else _encode(column)[0]
        for place, column in enumerate(columns.table.columns)
        if place not in same
    ]


def _bits(values: FloatArray) -> IntArray:
    bits: IntArray = (values + 0.0).view(np.int64)  # both zeros are one
    return bits


def number_groups(keys: Sequence[IntArray]) -> IntArray:
    """The number of each row's group (n,): rows are together that agree in every key (n,)."""
    order = np.lexsort(keys)
    begins = np.zeros(len(order), dtype=np.bool_)
    for key in keys:
        begins[1:] |= np.diff(key[order]) != 0
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.cumsum(begins)
    return number


def merge(table: TradeTable, number: IntArray, quantity: FloatArray | None) -> TradeTable:
    """One row for each group, in the order of their first rows: earliest entry, last exit, mean R.

    Playbook, regime and timeframe are those of a group's first row.
    """
    order = np.lexsort((table.r, number))  # sums run in value order: the order of rows reaches no bit
    starts = np.flatnonzero(np.concatenate(([True], np.diff(number[order]) != 0)))
    r, weight = table.r[order], np.ones(len(number))
    if quantity is not None:  # as shares of the largest fill: no sum of theirs leaves the finite numbers
        largest = np.maximum.reduceat(quantity[order], starts)
        weight = quantity[order] / np.repeat(largest, np.diff(np.append(starts, len(r))))
    mean = np.add.reduceat(r * weight, starts) / np.add.reduceat(weight, starts)
    same = np.minimum.reduceat(r, starts) == np.maximum.reduceat(r, starts)
    first = np.minimum.reduceat(order, starts)
    by_first = np.argsort(first)
    kept = first[by_first]
    return replace(
        table,
        entry_ns=np.minimum.reduceat(table.entry_ns[order], starts)[by_first],
        exit_ns=np.maximum.reduceat(table.exit_ns[order], starts)[by_first],
        r=np.where(same, r[starts], mean)[by_first],
        playbook=table.playbook[kept],
        regime=table.regime[kept],
        timeframe=table.timeframe[kept],
        symbol=None if table.symbol is None else table.symbol[kept],
    )


def _refuse_mixed(columns: _Columns, trades: TradeTable, number: IntArray) -> None:
    """Rows of one id have one playbook, regime and timeframe, and one symbol and direction where named."""
    _, first = np.unique(number, return_index=True)
    keys = _cell(trades) | {name: _encode(columns.lower(name))[0] for name in NAMED if name in columns}

    def problem(row: int) -> str:
        other = int(first[number[row]])
        column = columns.table.columns[columns.where[name]]
        written, before = (str(column[at].as_py() or "") for at in (row, other))
        return (
            f"{written!r} differs from {before!r} in {columns.table.place(other)}, which has the same "
            f"{_id_of(columns, row)}: {ONE_POSITION}"
        )

    for name, codes in keys.items():
        columns.refuse(name, codes != codes[first][number], problem)


def _refuse_apart(columns: _Columns, trades: TradeTable, number: IntArray) -> None:
    """Rows of one id overlap or touch, each another one before it: a position that was closed is over."""
    _, rank = np.unique(np.concatenate((trades.entry_ns, trades.exit_ns)), return_inverse=True)
    order = np.lexsort((trades.entry_ns, number))
    ranks = rank.reshape(2, -1)[:, order] + number[order] * len(rank)  # those of a group lie above the last
    apart = np.flatnonzero((ranks[0, 1:] > np.maximum.accumulate(ranks[1])[:-1]) & ~np.diff(number[order]))
    if apart.size:
        later = int(apart[0]) + 1
        row, earlier = int(order[later]), order[:later][number[order[:later]] == number[order[later]]]
        last = int(earlier[np.argmax(trades.exit_ns[earlier])])
        entered, left = _write_times(trades.entry_ns[row], trades.exit_ns[last])
        raise DataError(
            f"{columns.place('entry_time', row)}: {_id_of(columns, row)} enters at {entered}, "
            f"but was out at {left} ({columns.table.place(last)}): {ONE_POSITION}"
        )


def _id_of(columns: _Columns, row: int) -> str:
    return f"position_id {columns.table.strip_names(columns.where['position_id'])[row].as_py()!r}"
