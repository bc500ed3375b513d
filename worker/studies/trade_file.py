"""A table of resolved trades from CSV or Parquet: columns by name, judged row by row.

Nothing is repaired: a value that cannot be used is refused with its file, row, column and the next step. The
`trades.csv` of a run is such a table as it stands.
"""

import re
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
from worker.studies.trade_positions import BY_ID, BY_ORDER, BY_ROW, Positions, merge, number_groups

REQUIRED = ("playbook", "regime", "timeframe", "entry_time", "exit_time", "r")
OPTIONAL = ("reference", "looks", "no_learn", "position_id", "symbol", "direction", "quantity")
MOST_R = 1e9
TRUE, FALSE = ("true", "1"), ("false", "0")
OWN_NAMES = {
    "playbook_id": "playbook",
    "entry_label": "entry_time",
    "exit_label": "exit_time",
}  # of trades.csv
OUTCOME = "write the outcome in R, or remove the row (an open trade is not resolved)"
QUANTITY = "write how much was traded, or leave the column out"
ONE_POSITION = "give every position an id of its own, or leave the column out"
REFERENCE = "write what the playbook's trades are held against, in R, or leave the column out"
_BAR = re.compile(r"(?P<count>[1-9]\d{0,3})(?P<unit>[smhdwM])")
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800, "M": 2_592_000}
IntArray = npt.NDArray[np.int64]
Codes = tuple[IntArray, tuple[str, ...]]


@dataclass(frozen=True)
class TradeFile:
    """The trades of a file, and the times of its own looks, if it has any.

    Trades of a no-learn zone teach nothing: they are left out, and counted in `no_learn`; None
    for a table that has no such column. `positions` says which rows were one position.
    """

    trades: TradeTable
    looks: tuple[int, ...] | None
    no_learn: int | None
    positions: Positions


@dataclass(frozen=True, kw_only=True)
class _KeptRows(BarTable):
    """Some rows of a file, which still know their places in it."""

    rows: IntArray

    def place(self, row: int) -> str:
        return super().place(int(self.rows[row]))


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
    where = _columns(table.names, table.path.name)
    table, left_out = _learnable(table, where)
    if reference is not None and "reference" in where:
        raise DataError(
            f"{table.path.name} has a column 'reference': leave --reference out, or remove the column"
        )
    zone = zone_named(tz)
    entry, exit_ns = (_times(table, where[name], zone) for name in ("entry_time", "exit_time"))
    advice = ": correct one of them, or remove the row"
    _refuse_early(table, "exit_time", exit_ns, entry, ("exit", "entry"), advice)
    r = _outcomes(table, where["r"])
    (books, names), (regimes, cells) = (_codes(table, where[name]) for name in ("playbook", "regime"))
    frames, labels, bar_s = _timeframes(table, where["timeframe"])
    held = tuple(usual.get(name, usual[""]) if reference is None else reference for name in names)
    if "reference" in where:
        held = _references(table, where["reference"], books, names)
    trades = TradeTable(entry, exit_ns, r, books, regimes, frames, names, cells, labels, bar_s, held)
    told = _times(table, where["looks"], zone) if "looks" in where else None
    if told is not None:
        advice = ", when the trade was not known: correct one of them, or leave the column out"
        _refuse_early(table, "looks", told, exit_ns, ("look", "exit"), advice)
    held_together, positions = _join_positions(table, where, trades, told)
    looks = None if told is None else tuple(np.unique(told).tolist())
    return TradeFile(held_together, looks, left_out, positions)


def _join_positions(
    table: BarTable, where: dict[str, int], trades: TradeTable, looks: IntArray | None
) -> tuple[TradeTable, Positions]:
    """The table with one row for each position, and how rows were held together.

    Only an id says which rows are one position, where they can be one: what is inferred keeps the other
    reading as `otherwise`.
    """
    quantity = _quantities(table, where["quantity"]) if "quantity" in where else None
    if "position_id" in where:
        by, keys = BY_ID, [_codes(table, where["position_id"])[0]]
    elif "symbol" in where and "direction" in where:
        named = [_alike(*_codes(table, where[name])) for name in ("symbol", "direction")]
        cell = [trades.playbook, trades.regime, trades.timeframe]
        by, keys = BY_ORDER, [*named, *cell, trades.entry_ns, trades.exit_ns]
    else:
        by, keys = BY_ROW, _of_rows(table, where, trades, looks, quantity)
    number = number_groups(keys)
    rows, groups = len(number), int(number.max()) + 1
    if rows == groups:
        return trades, Positions(by, rows, rows, 0, _mean(trades), None)
    if by == BY_ID:
        _refuse_mixed(table, where, trades, number)
        _refuse_apart(table, where, trades, number)
    merged = merge(trades, number, quantity)
    if by == BY_ID:
        return merged, Positions(by, rows, groups, 0, _mean(merged), _mean(trades))
    if by == BY_ORDER:
        return replace(merged, otherwise=trades), Positions(by, rows, groups, 0, _mean(merged), _mean(trades))
    kept = Positions(by, rows, rows, rows - groups, _mean(trades), _mean(merged))
    return replace(trades, otherwise=merged), kept


def _mean(trades: TradeTable) -> float:
    return round(float(np.sort(trades.r).mean()), 9)  # in value order: the order of rows reaches no bit


def _of_rows(
    table: BarTable,
    where: dict[str, int],
    trades: TradeTable,
    looks: IntArray | None,
    quantity: npt.NDArray[np.float64] | None,
) -> list[IntArray]:
    """Every column as keys (n,): what the gate reads by its value, the rest as it is written."""
    read = {
        "playbook": trades.playbook,
        "regime": trades.regime,
        "timeframe": trades.timeframe,
        "entry_time": trades.entry_ns,
        "exit_time": trades.exit_ns,
        "r": _bits(trades.r),
        "looks": looks,
        "quantity": None if quantity is None else _bits(quantity),
    }
    known = {where[name]: key for name, key in read.items() if name in where and key is not None}
    same = {where[name] for name in ("reference", "no_learn") if name in where}  # in every row of a playbook
    return [
        known[place] if place in known else _encode(column)
        for place, column in enumerate(table.columns)
        if place not in same
    ]


def _bits(values: npt.NDArray[np.float64]) -> IntArray:
    """A number for each float (n,), equal where they are: both zeros are one."""
    bits: IntArray = (values + 0.0).view(np.int64)
    return bits


def _alike(codes: IntArray, names: tuple[str, ...]) -> IntArray:
    """Codes (n,) that are equal where names differ in case alone."""
    _, same = np.unique([name.casefold() for name in names], return_inverse=True)
    return np.asarray(same, dtype=np.int64)[codes]


def _encode(column: Any) -> IntArray:
    """A number for each value of a column (n,), equal where values are; missing ones are equal."""
    encoded: Any = pc.dictionary_encode(column, null_encoding="encode")
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    codes: IntArray = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


def _refuse_mixed(table: BarTable, where: dict[str, int], trades: TradeTable, number: IntArray) -> None:
    """Rows of one id have one playbook, regime and timeframe, and one symbol and direction where named."""
    _, first = np.unique(number, return_index=True)
    keys = {name: getattr(trades, name) for name in ("playbook", "regime", "timeframe")}
    keys |= {name: _encode(_lower(table, where[name])) for name in ("symbol", "direction") if name in where}
    for name, codes in keys.items():
        odd = np.flatnonzero(codes != codes[first][number])
        if odd.size:
            row, other = int(odd[0]), int(first[number[odd[0]]])
            written, before = (str(table.columns[where[name]][at].as_py() or "") for at in (row, other))
            raise DataError(
                f"{_place(table, where[name], row)}: {written!r} differs from {before!r} in "
                f"{table.place(other)}, which has the same {_id_of(table, where, row)}: {ONE_POSITION}"
            )


def _refuse_apart(table: BarTable, where: dict[str, int], trades: TradeTable, number: IntArray) -> None:
    """Rows of one id overlap or touch, each another one before it: a position that was closed is over."""
    _, rank = np.unique(np.concatenate((trades.entry_ns, trades.exit_ns)), return_inverse=True)
    order = np.lexsort((trades.entry_ns, number))
    ranks = rank.reshape(2, -1)[:, order] + number[order] * len(rank)  # those of a group lie above the last
    apart = np.flatnonzero((ranks[0, 1:] > np.maximum.accumulate(ranks[1])[:-1]) & ~np.diff(number[order]))
    if apart.size:
        later = int(apart[0]) + 1
        row, earlier = int(order[later]), order[:later][number[order[:later]] == number[order[later]]]
        last = int(earlier[np.argmax(trades.exit_ns[earlier])])
        entered, left = _write_time(trades.entry_ns[row]), _write_time(trades.exit_ns[last])
        raise DataError(
            f"{_place(table, where['entry_time'], row)}: {_id_of(table, where, row)} enters at {entered}, "
            f"but was out at {left} ({table.place(last)}): {ONE_POSITION}"
        )


def _id_of(table: BarTable, where: dict[str, int], row: int) -> str:
    return f"position_id {table.strip_names(where['position_id'])[row].as_py()!r}"


def _lower(table: BarTable, column: int) -> Any:
    """A column as text without case and outer space, an Arrow array."""
    return pc.utf8_lower(pc.utf8_trim_whitespace(pc.cast(table.columns[column], pa.string())))


def _quantities(table: BarTable, column: int) -> npt.NDArray[np.float64]:
    values = _numbers(table, column, QUANTITY)
    odd = np.flatnonzero(values <= 0.0)
    if odd.size:
        row = int(odd[0])
        raise DataError(
            f"{_place(table, column, row)}: the quantity {float(values[row])!r} is not above 0: {QUANTITY}"
        )
    return values


def _learnable(table: BarTable, where: dict[str, int]) -> tuple[BarTable, int | None]:
    """The table without the rows whose `no_learn` is true, and how many those are; None without the column.

    Raises:
        DataError: a value is neither true nor false, or nothing is left.
    """
    if "no_learn" not in where:
        return table, None
    column = where["no_learn"]
    words = _lower(table, column)
    true, false = (pc.is_in(words, pa.array(known)) for known in (TRUE, FALSE))
    left_out, kept = (
        np.asarray(mask.to_numpy(zero_copy_only=False), dtype=np.bool_) for mask in (true, false)
    )
    odd = np.flatnonzero(~(left_out | kept))
    if odd.size:
        said = words[int(odd[0])].as_py()
        raise DataError(f"{_place(table, column, int(odd[0]))}: {said!r} is neither true nor false")
    if not kept.any():
        raise DataError(f"{table.path.name}: every trade is of a no-learn zone: there is nothing to grade")
    rows = np.flatnonzero(kept)
    columns = tuple(values.take(pa.array(rows)) for values in table.columns)
    return _KeptRows(**vars(table) | {"columns": columns}, rows=rows), int(left_out.sum())


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


def _place(table: BarTable, column: int, row: int) -> str:
    return f"{table.place(row)}, column {table.names[column]!r}"


def _times(table: BarTable, column: int, zone: ZoneInfo | None) -> IntArray:
    return utc_labels(table.columns[column], lambda row: _place(table, column, row), zone)


def _refuse_early(
    table: BarTable, column: str, times: IntArray, before: IntArray, names: tuple[str, str], advice: str
) -> None:
    """Refuse a time, ns, that lies before another one of its row; `names` says what they are times of."""
    early = np.flatnonzero(times < before)
    if early.size:
        row = int(early[0])
        at, bound = (_write_time(each[row]) for each in (times, before))
        raise DataError(
            f"{table.place(row)}, column {column!r}: the {names[0]} {at} lies before the {names[1]} {bound}"
            f"{advice}"
        )


def _write_time(time_ns: Any) -> str:
    return f"{np.datetime64(int(time_ns) // 10**9, 's')!s}Z"


def _numbers(table: BarTable, column: int, advice: str) -> npt.NDArray[np.float64]:
    """Finite numbers of a column (n,).

    Raises:
        DataError: one is none; it names the place, and says `advice`.
    """
    values = table.numbers(column)
    odd = np.flatnonzero(~np.isfinite(values))
    if odd.size:
        row = int(odd[0])
        word = "empty or NaN" if np.isnan(values[row]) else f"{float(values[row])!r}"
        raise DataError(f"{_place(table, column, row)}: the value is {word}, not a finite number: {advice}")
    return values


def _outcomes(table: BarTable, column: int) -> npt.NDArray[np.float64]:
    """R of every row; what no trade can have made, and no sum could hold, is refused."""
    values = _numbers(table, column, OUTCOME)
    odd = np.flatnonzero(np.abs(values) > MOST_R)
    if odd.size:
        row = int(odd[0])
        raise DataError(
            f"{_place(table, column, row)}: {float(values[row])!r} is more than {MOST_R:,.0f} times what was "
            "risked: write the outcome in R (profit / risk at entry), or remove the row"
        )
    return values


def _codes(table: BarTable, column: int) -> Codes:
    """Codes into sorted names; an empty name is refused."""
    encoded: Any = pc.dictionary_encode(table.strip_names(column))
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    raw: list[str] = encoded.dictionary.to_pylist()
    codes: IntArray = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    if "" in raw:
        row = int(np.flatnonzero(codes == raw.index(""))[0])
        raise DataError(f"{_place(table, column, row)}: the name is empty: write one, or remove the row")
    _refuse_separator(table, column, raw, codes)
    names = sorted(raw)
    rank = np.array([names.index(name) for name in raw], dtype=np.int64)
    return rank[codes], tuple(names)


def _refuse_separator(table: BarTable, column: int, raw: list[str], codes: IntArray) -> None:
    """A name with the separator of hypotheses could stand for two clusters."""
    for position, name in enumerate(raw):
        if "|" in name:
            row = int(np.flatnonzero(codes == position)[0])
            raise DataError(f"{_place(table, column, row)}: {name!r} holds '|': use another character")


def _timeframes(table: BarTable, column: int) -> tuple[IntArray, tuple[str, ...], tuple[int, ...]]:
    """Codes into labels, the labels, and the seconds of a bar of each; `60m` and `1h` are one label."""
    codes, labels = _codes(table, column)
    seconds = _bar_seconds(table, column, codes, labels)
    shortest = {
        lasts: min((len(name), name) for name, other in zip(labels, seconds, strict=True) if other == lasts)[
            1
        ]
        for lasts in seconds
    }
    kept = sorted((name, lasts) for lasts, name in shortest.items())
    number = np.array([kept.index((shortest[lasts], lasts)) for lasts in seconds], dtype=np.int64)
    return number[codes], tuple(name for name, _ in kept), tuple(lasts for _, lasts in kept)


def _bar_seconds(table: BarTable, column: int, codes: IntArray, labels: tuple[str, ...]) -> tuple[int, ...]:
    found = []
    for position, label in enumerate(labels):
        match = _BAR.fullmatch(label)
        if match is None:
            row = int(np.flatnonzero(codes == position)[0])
            raise DataError(
                f"{_place(table, column, row)}: {label!r} is no timeframe: write a number and one of "
                f"{', '.join(_SECONDS)}, like 15m, 4h or 1d"
            )
        found.append(int(match["count"]) * _SECONDS[match["unit"]])
    return tuple(found)


def _references(table: BarTable, column: int, books: IntArray, names: tuple[str, ...]) -> tuple[float, ...]:
    """One reference for each playbook."""
    values = _numbers(table, column, REFERENCE)
    _, first = np.unique(books, return_index=True)
    differing = np.flatnonzero(values != values[first][books])
    if differing.size:
        row = int(differing[0])
        other, name = int(first[books[row]]), names[books[row]]
        raise DataError(
            f"{_place(table, column, row)}: {float(values[row])!r} differs from {float(values[other])!r} in "
            f"{table.place(other)}: give every trade of {name!r} the same reference"
        )
    return tuple(float(value) for value in values[first])
