"""Numbers as people write them: decimal commas, thousands, signs of currencies, K, M and B behind a volume.

Only where plain numbers cannot be read, or the operator says how they are written.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from schemas.errors import DataError
from worker.feeds.files.bar_table import BarTable, parses, without_empty_words

Decimal = Literal[".", ","]
_UNTOLD = "the mark of decimals cannot be told"
_UNITS = {"K": "e3", "M": "e6", "B": "e9"}
_MARKS = r"\s\x{A0}\x{202F}'’"
_POINTS = r"^(0|[1-9]\d{0,2}(\.\d{3})*)$"  # may be whole numbers with points between their thousands
_COMMAS = r"^\d{1,3}(,\d{3})*$"
_UNIT = r"\d[\s\x{A0}\x{202F}]*(\p{L}{2,}\.?|[^\P{L}KkMmBb]|%)$"
_TICKS = r"^\d+['’]([0-2]\d|3[01])[0257]$"
_THOUSANDS = rf"^\D*\d{{1,3}}([{_MARKS}]\d{{3}})+([^\d{_MARKS}][^{_MARKS}]*)?$"  # 99'16 has none


def plain_table(
    table: BarTable,
    prices: Sequence[int],
    others: Sequence[int],
    decimal: Decimal | None,
    tell: Callable[[str], None],
) -> BarTable:
    """The table with numbers as `float` reads them in some of its columns.

    Columns of `prices` say how decimals are marked where `decimal` is None; `others` are those of volumes.

    Raises:
        DataError: the mark of the decimals cannot be told, or is not the same everywhere.
    """
    texts = {
        place: without_empty_words(table.columns[place])
        for place in (*prices, *others)
        if pa.types.is_string(table.columns[place].type)
    }
    if decimal is None and all(map(parses, texts.values())):
        _check_points(table, _join_texts(texts, prices), _join_texts(texts, others), tell)
        return table
    if decimal is None:
        _check_no_ticks(table, _join_texts(texts, prices))
    bare = {place: _without_marks(each) for place, each in texts.items()}
    _check_no_units(table, texts)
    if decimal is None and not any(_is_written(bare[place], each) for place, each in texts.items()):
        return table
    if decimal is None:
        decimal = _decimal_of(table, _join_texts(bare, prices))
    columns = list(table.columns)
    for place, each in bare.items():
        columns[place] = _plain(each, decimal)
    return replace(table, columns=tuple(columns))


def _join_texts(texts: Mapping[int, Any], places: Sequence[int]) -> Any:
    return pa.chunked_array(
        [chunk for place in places if place in texts for chunk in texts[place].chunks], pa.string()
    )


def _check_points(table: BarTable, prices: Any, volumes: Any, tell: Callable[[str], None]) -> None:
    """Tell, or refuse, plain numbers in a text of which each point may stand between thousands.

    Refused where cells have semicolons between them, or some volumes a point and others none: no volume is
    a fraction.
    """
    numbers = prices if _any(prices, r"\.") else volumes
    if not table.separator or not _any(numbers, r"\.") or not _are_all(numbers, _POINTS):
        return
    is_mixed = _any(volumes, r"\.") and _any(volumes, "^[1-9]\\d*$") and _are_all(volumes, _POINTS)
    if is_mixed or table.separator == ";":
        raise _ask_mark(table, numbers)
    shown = _first_marked(numbers)
    tell(f"numbers like {shown} are read with a decimal point: --decimal , if it marks thousands")


def _check_no_ticks(table: BarTable, texts: Any) -> None:
    """Refuse prices that all have a 32nd and a part of it behind their mark, as thousands never have."""
    marked = pc.filter(texts, pc.fill_null(pc.match_substring_regex(texts, "['’]"), False))
    if len(marked) and pc.all(pc.match_substring_regex(marked, _TICKS)).as_py():
        raise DataError(
            f"{table.path.name}: prices like {marked[0].as_py()!r} can be thousands, which --decimal . says, "
            "or 32nds: write those as decimals"
        )


def _check_no_units(table: BarTable, texts: Mapping[int, Any]) -> None:
    """Refuse numbers with words behind them, which no option removes."""
    for place, each in texts.items():
        rows = pc.indices_nonzero(pc.fill_null(pc.match_substring_regex(each, _UNIT), False))
        if len(rows):
            row = rows[0].as_py()
            cell = each[row].as_py()
            raise DataError(
                f"{table.place(row)}: {table.names[place]!r} is {cell!r}: write a number in full, without "
                "the word behind it"
            )


def _without_marks(texts: Any) -> Any:
    """Texts without signs of currencies, blanks at their edges and marks of thousands."""
    bare = pc.replace_substring_regex(texts, "[$€£¥]", "")
    bare = pc.replace_substring_regex(bare, rf"(^|[^\d{_MARKS}])[{_MARKS}]+", r"\1")
    bare = pc.replace_substring_regex(bare, rf"[{_MARKS}]+([^\d{_MARKS}]|$)", r"\1")
    joined = pc.replace_substring_regex(bare, f"[{_MARKS}]", "")
    return pc.if_else(pc.match_substring_regex(bare, _THOUSANDS), joined, bare)


def _is_written(bare: Any, texts: Any) -> bool:
    """Whether at least half of the numbers are not plain."""
    if parses(bare) or _are_all(bare, _COMMAS):
        return not parses(texts)
    marked = pc.match_substring_regex(bare, r"[,KkMmBb]|\..*\.|^-$")
    return 2 * int(pc.sum(marked).as_py() or 0) >= int(pc.count(texts).as_py())


def _decimal_of(table: BarTable, prices: Any) -> Decimal:
    commas = _any(prices, r"\..*,|,\d{0,2}$|,\d{4,}$")  # behind a point, or before no group of three
    points = _any(prices, r",.*\.|^[^,]*\.\d{0,2}$|^[^,.]*\.\d{4,}$")
    commas, points = commas or _any(prices, r"\..*\."), points or _any(prices, r",.*,")
    if commas != points:
        return "," if commas else "."
    if not _any(prices, r"[,.]"):
        return "."
    raise _ask_mark(table, prices, "both , and . mark decimals" if commas else _UNTOLD)


def _ask_mark(table: BarTable, texts: Any, problem: str = _UNTOLD) -> DataError:
    return DataError(
        f"{table.path.name}: {problem} in prices like {_first_marked(texts)!r}: say "
        "which it is with --decimal , or --decimal ."
    )


def _are_all(texts: Any, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(texts, pattern)).as_py())


def _any(texts: Any, pattern: str) -> bool:
    return bool(pc.any(pc.match_substring_regex(texts, pattern)).as_py())


def _first_marked(texts: Any) -> str:
    marked = pc.filter(texts, pc.fill_null(pc.match_substring_regex(texts, r"[,.]"), False))
    return str(marked[0].as_py())


def _plain(texts: Any, decimal: Decimal) -> Any:
    plain = pc.replace_substring(texts, "." if decimal == "," else ",", "")
    plain = pc.replace_substring(plain, ",", ".")
    for unit, power in _UNITS.items():
        plain = pc.replace_substring_regex(plain, f"(?i)(\\d){unit}$", f"\\1{power}")
    return pc.if_else(pc.equal(plain, "-"), pa.scalar(None, pa.string()), plain)
