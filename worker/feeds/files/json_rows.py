"""Bars in a JSON document: rows that are lists or objects, alone or by symbol, or columns that are lists.

Pure: a document in, names and columns out. Objects around the rows, such as `bars` or `results`, are passed.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from schemas.errors import DataError
from worker.feeds.files.columns import PRICES
from worker.feeds.files.names import CONTAINERS, FURTHER, bare_name, further_place, role_of
from worker.feeds.files.shapes import SAMPLE, TableShape, unnamed_header

MOST_LEVELS = 6  # of objects around the rows
_SYMBOL = "symbol"
ROWS_AT = "rows at"


def json_columns(path: Path, data: bytes, columns: Mapping[str, str]) -> tuple[TableShape, list[list[Any]]]:
    """The names and columns of the bars in a JSON document; with a column `symbol` where it names symbols.

    Where no rows of bars are known by name, or `columns` names others, it is the longest list of rows.

    Raises:
        DataError: no JSON, or no rows in it.
    """
    try:
        document = _document(data)
    except RecursionError as error:
        raise DataError(f"{path.name} nests deeper than any table: write rows of bars") from error
    except ValueError as error:
        raise DataError(f"{path.name} is no JSON document: {error}") from error
    groups, note = list(_groups(document, None, 0)), None
    if groups and columns and not _has(groups[0][1][0], columns.values()):
        groups = []
    if not groups:
        where, rows = max(_lists(document), key=lambda found: len(found[1]), default=("", []))
        if not rows:
            raise DataError(
                f"{path.name} holds no rows of bars: read it by pandas and write it with to_csv, one row a "
                "bar and the columns time, open, high, low, close, volume"
            )
        groups, note = [(None, rows)], f"{ROWS_AT} {where or 'the top'!r} are read"
    names: list[str] = []
    for _, rows in groups:
        if isinstance(rows[0], list):
            shown = [["" if cell is None else str(cell) for cell in row] for row in rows[:SAMPLE]]
            header = unnamed_header(shown)
            numbers = tuple(str(place + 1) for place in range(len(rows[0])))
            header = TableShape(numbers, 0, note) if columns else header
            note = header.note
            rows[:] = [dict(zip(header.names, row, strict=True)) for row in rows]
        names += [name for name in rows[0] if name not in names]
    cells = [[_plain(row.get(name)) for _, rows in groups for row in rows] for name in names]
    if any(symbol for symbol, _ in groups) and not any(role_of(name) == _SYMBOL for name in names):
        names.append(_SYMBOL)
        cells.append([symbol or path.stem for symbol, rows in groups for _ in rows])
    return TableShape(tuple(names), 0, note), cells


def _has(row: Any, columns: Iterable[str]) -> bool:
    return isinstance(row, list) or set(columns) <= {*row, *map(str, range(1, len(row) + 1))}


def _plain(cell: Any) -> Any:
    return int(cell) if isinstance(cell, bool) else cell


def _lists(found: Any, where: str = "", level: int = 0) -> Iterator[tuple[str, list[Any]]]:
    """Lists of rows anywhere in a document, with the names that lead there."""
    if level > MOST_LEVELS:
        return
    if isinstance(found, list) and found:
        kinds = {type(row) for row in found}
        if kinds == {list} and len({len(row) for row in found}) == 1 and len(found[0]) > len(PRICES):
            yield where, [list(row) for row in found]
            return
        if kinds == {dict}:
            yield where, [_flat(row) for row in found]
        for place, item in enumerate(found):
            yield from _lists(item, f"{where}.{place}".lstrip("."), level + 1)
    elif isinstance(found, dict):
        columns = {key: value for key, value in found.items() if _are_plain(value) and value}
        if len(columns) > len(PRICES) and len({*map(len, columns.values())}) == 1:
            yield where, [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        for key, value in found.items():
            yield from _lists(value, f"{where}.{key}".lstrip("."), level + 1)


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """A row with the cells of objects in it; where one of them alone has the prices, by their own names."""
    inner = {key: value for key, value in row.items() if isinstance(value, dict)}
    bars = [value for value in inner.values() if _is_bar(value)]
    plain = {key: value for key, value in row.items() if not isinstance(value, dict | list)}
    if len(bars) == 1:
        return plain | bars[0]
    return plain | {f"{key}.{name}": cell for key, value in inner.items() for name, cell in value.items()}


def _document(data: bytes) -> Any:
    """The document, or a list of those that stand one a line."""
    try:
        return json.loads(data)
    except json.JSONDecodeError as error:
        lines = [line for line in data.splitlines() if line.strip()]
        try:
            return [json.loads(line) for line in lines]
        except ValueError:
            raise error from None


def _groups(
    found: Any, symbol: str | None, level: int, times: Sequence[Any] = ()
) -> Iterator[tuple[str | None, list[Any]]]:
    """The rows in a document with the symbol under which they stand; `times` are those of columns below."""
    if level > MOST_LEVELS:
        return
    if isinstance(found, list):
        if _are_rows(found):
            yield symbol, found
        else:
            for item in found:
                yield from _groups(item, symbol, level + 1, times)
    elif isinstance(found, dict):
        own = next((str(value) for key, value in found.items() if role_of(key) == _SYMBOL), symbol)
        times = next((value for key, value in found.items() if _is_time(key) and _are_plain(value)), times)
        if (rows := _of_columns(found)) is not None:
            if len(times) == len(rows) and not any(map(_is_time, rows[0])):
                rows = [{"time": time} | row for time, row in zip(times, rows, strict=True)]
            yield own, rows
            return
        inner = {key: value for key, value in found.items() if isinstance(value, list | dict) and value}
        all_rows = len(inner) == len(found) and all(map(_are_bars, inner.values()))
        for key, value in inner.items():
            is_symbol = all_rows and (level or len(inner) > 1) and bare_name(key) not in CONTAINERS
            yield from _groups(value, key if is_symbol else own, level + 1, times)


def _is_time(key: str) -> bool:
    return role_of(key) == "time" or bare_name(key) in FURTHER["time"]


def _are_plain(values: Any) -> bool:
    return isinstance(values, list) and not isinstance(next(iter(values), None), list | dict)


def _are_bars(value: Any) -> bool:
    return _are_rows(value) or (isinstance(value, dict) and _of_columns(value) is not None)


def _are_rows(found: Any) -> bool:
    """Whether all are objects with prices, or lists of plain cells, of one length."""
    if not isinstance(found, list) or not found:
        return False
    if all(isinstance(row, dict) for row in found):
        if not _is_bar(found[0]) and _is_bar(_flat(found[0])):
            found[:] = [_flat(row) for row in found]
        return _is_bar(found[0])
    lists = all(isinstance(row, list) for row in found)
    return lists and len({len(row) for row in found}) == 1 and len(found[0]) > len(PRICES)


def _of_columns(found: dict[str, Any]) -> list[dict[str, Any]] | None:
    """Rows of an object of columns or objects by time, or of names beside rows; None where it is none."""
    lists = [value for value in found.values() if isinstance(value, list) and value]
    for rows in (each for each in lists if isinstance(each[0], list) and _are_rows(each)):
        for names in (each for each in lists if len(each) == len(rows[0])):
            if all(isinstance(name, str) for name in names) and _price_columns(tuple(names)):
                return [dict(zip(names, row, strict=True)) for row in rows]
    if prices := _price_columns(tuple(found)):
        kinds = {type(found[name]) for name in prices}
        if kinds == {list}:
            named = {key: value for key, value in found.items() if isinstance(value, list)}
            cells = zip(*lists, strict=True) if len(set(map(len, named.values()))) == 1 else ()
            return [dict(zip(named, row, strict=True)) for row in cells] or None
        if kinds == {dict} and all(any(map(str.isdigit, time)) for time in found[prices[0]]):
            times = found[prices[0]]
            by_time = {key: value for key, value in found.items() if isinstance(value, dict)}
            return [{"time": time} | {key: each.get(time) for key, each in by_time.items()} for time in times]
    objects = [value for value in found.values() if isinstance(value, dict)]
    if objects and len(objects) == len(found) and all(map(_is_bar, objects)):
        return [{"time": time, **row} for time, row in found.items()]
    return None


def _is_bar(row: dict[str, Any]) -> bool:
    prices = _price_columns(tuple(row))
    return bool(prices) and not isinstance(row[prices[0]], list | dict)


@lru_cache
def _price_columns(names: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the names that are the four prices; none where one is missing."""
    places = [further_place(role, names, set()) for role in PRICES]
    return () if None in places else tuple(names[place] for place in places if place is not None)
