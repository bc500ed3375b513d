"""Which column of a bar file is what: long, single-symbol or wide, recognised by name, in any order and case.

Pure: names in, a `Layout` out. A name that cannot be placed is passed over; a role that is missing or claimed
twice is a `DataError` that lists what was found.
"""

from dataclasses import dataclass, field

from schemas.errors import DataError, nearest
from trading_core.bars import extra_name
from worker.feeds.files.names import (
    DATES,
    FURTHER,
    NAMES,
    ROLE_OF,
    bare_name,
    further_place,
    plain_name,
    role_of,
)

PRICES = ("open", "high", "low", "close")
FIELDS = (*PRICES, "volume")
FEWEST = 5  # columns: a time and four prices
_INDEX_COLUMN = "__index_level_0__"  # how pandas writes an unnamed index to Parquet
_BETWEEN = "_.:/ -"  # symbol and field in the name of a wide column
_WIDE_NAMES = (
    {"vol": "volume"}
    | dict(zip(FIELDS, FIELDS, strict=True))
    | dict.fromkeys(FURTHER["adjusted"], "adjusted")
)

Fields = dict[str, int]


@dataclass(frozen=True)
class Layout:
    """Positions of the columns of one file."""

    time: int  # the time column
    symbol: int | None  # the column that names each row's symbol (long format), else None
    # the columns of prices and volume of a long or single-symbol file, else None; `adjusted` are closes that
    # are adjusted for splits and dividends
    single: Fields | None
    wide: dict[str, Fields]  # those columns by symbol for a wide file, else empty
    # other columns of a long or single-symbol file, by the name under which a rule reads them
    extra: Fields = field(default_factory=dict)
    clock: int | None = None  # the column of the time of the day where `time` is one of dates, else None

    @property
    def groups(self) -> list[Fields]:
        """The columns of each symbol, or those of the rows of all."""
        return list(self.wide.values()) if self.single is None else [self.single]

    @property
    def needed(self) -> set[int]:
        """Positions of the columns without which there are no bars."""
        places = {self.time, *(place for roles in self.groups for place in roles.values())}
        return places | {place for place in (self.symbol, self.clock) if place is not None}


def recognise(names: tuple[str, ...], file: str) -> Layout:
    """The layout of a file with these column names; volume may be absent.

    Raises:
        DataError: a role is missing or claimed by two columns.
    """
    own = _roles(names, file)
    roles = own if own.keys() >= {"time", *FIELDS} else _further_roles(names, own)
    if "time" not in roles:
        raise DataError(_missing(["time"], names, file))
    roles |= {} if roles.keys() >= {*PRICES} else _adjusted_prices(names)
    absent = [field for field in PRICES if field not in roles]
    wide = _wide(names, file) if absent and not any(field in own for field in FIELDS) else {}
    if wide:
        return Layout(roles["time"], None, None, wide)
    if absent:
        raise DataError(_missing(absent, names, file))
    taken = set(roles.values())
    extra: Fields = {}
    for position, name in enumerate(names):
        known = extra_name(name) if position not in taken else None
        if known is not None:
            extra.setdefault(known, position)
    plain = {field: roles[field] for field in FIELDS if field in roles}
    if (adjusted := further_place("adjusted", names, taken)) is not None:
        plain["adjusted"] = adjusted
    return Layout(roles["time"], roles.get("symbol"), plain, {}, extra, roles.get("clock"))


def bar_columns(names: tuple[str, ...], file: str) -> list[int]:
    """Positions of the columns that bars are made of and of others that a rule can name, ascending.

    Raises:
        DataError: as `recognise`.
    """
    layout = recognise(names, file)
    return sorted({*layout.needed, *layout.extra.values()})


def further_columns(names: tuple[str, ...], file: str) -> set[int]:
    """Positions of the columns that are taken where they hold numbers; any other is needed.

    Raises:
        DataError: as `recognise`.
    """
    layout = recognise(names, file)
    adjusted = {fields["adjusted"] for fields in layout.groups if "adjusted" in fields}
    return adjusted.union(layout.extra.values())


def _roles(names: tuple[str, ...], file: str) -> Fields:
    roles: Fields = {}
    plain = [plain_name(name) for name in names]
    for position, name in enumerate(names):
        role = "clock" if plain[position] == "time" and "date" in plain else role_of(name)
        if role is not None and role in roles:
            if plain[position] == plain[roles[role]] and (name == role) != (names[roles[role]] == role):
                roles[role] = position if name == role else roles[role]  # its exact case first
                continue
            raise DataError(
                f"{file}: columns {names[roles[role]]!r} and {name!r} both name the {role}: keep one of them"
            )
        if role is not None:
            roles[role] = position
    if "time" not in roles and _INDEX_COLUMN in names:
        roles["time"] = names.index(_INDEX_COLUMN)
    return roles


def _further_roles(names: tuple[str, ...], own: Fields) -> Fields:
    """The roles, and those that columns have by names of other programs."""
    roles = dict(own)
    for role in FURTHER:
        wanted = role not in roles and role != "adjusted" and (role != "clock" or "time" not in own)
        if wanted and (place := further_place(role, names, set(roles.values()))) is not None:
            roles[role] = place
    if "clock" in roles and bare_name(names[roles["time"]]) not in DATES:
        del roles["clock"]
    return roles


def _adjusted_prices(names: tuple[str, ...]) -> Fields:
    """The four prices that a file has adjusted alone, as "Adj. Open"; else none."""
    words = [bare_name(name).partition("_") for name in names]
    found = {last: place for place, (first, _, last) in enumerate(words) if first in ("adj", "adjusted")}
    return {field: found[field] for field in FIELDS if field in found} if found.keys() >= {*PRICES} else {}


def _wide(names: tuple[str, ...], file: str) -> dict[str, Fields]:
    groups: dict[str, Fields] = {}
    for position, name in enumerate(names):
        symbol, field = _split(name.strip())
        if not symbol:
            continue
        fields = groups.setdefault(symbol, {})
        if field in fields:
            raise DataError(
                f"{file}: columns {names[fields[field]]!r} and {name!r} both name the {field} of {symbol}"
            )
        fields[field] = position
    for symbol, fields in groups.items():
        absent = [field for field in PRICES if field not in fields]
        if absent:
            raise DataError(
                f"{file}: symbol {symbol!r} has no {', '.join(absent)} column: "
                f"name it like {names[next(iter(fields.values()))]!r}, or drop the symbol's columns"
            )
    return groups


def _split(name: str) -> tuple[str, str]:
    """The symbol and the field in the name of a wide column, in either order; empty where there are none."""
    plain = name.lower().replace(" ", "_").replace("-", "_")
    for is_last in (True, False):
        for alias in sorted(_WIDE_NAMES, key=len, reverse=True):
            size = len(alias)
            found, rest = (plain[-size:], name[:-size]) if is_last else (plain[:size], name[size:])
            symbol, between = (rest[:-1], rest[-1:]) if is_last else (rest[1:], rest[:1])
            if found == alias and between and between in _BETWEEN and symbol.strip():
                return symbol.strip(), _WIDE_NAMES[alias]
    return "", ""


def _missing(absent: list[str], names: tuple[str, ...], file: str) -> str:
    found = ", ".join(repr(name) for name in names[:20]) + (", ..." if len(names) > 20 else "")
    guess = nearest(absent[0], [name for name in names if name.strip().lower() not in ROLE_OF])
    accepted = " or ".join(NAMES[absent[0]])
    cure = f"name it {accepted}" if len(absent) == 1 else "name them so, if it is a table of bars"
    if names == tuple(str(number) for number in range(1, len(names) + 1)):
        return (
            f"{file} names no columns, and no known order of open, high, low and close is possible in its "
            "rows; write a first line such as time,open,high,low,close,volume"
        )
    if len(names) < FEWEST:
        cure = "a bar has a time and four prices: make bars of ticks first, in pandas by resample(...).ohlc()"
    return f"{file}: no {', '.join(absent)} column among {found}; {cure}.{guess}"
