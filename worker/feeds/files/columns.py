"""Which column of a bar file is what: long, single-symbol or wide, recognised by name, in any order and case.

Pure: names in, a `Layout` out. A name that cannot be placed is passed over; a role that is missing or claimed
twice is a `DataError` that lists what was found.
"""

import re
from dataclasses import dataclass, field

from schemas.errors import DataError, nearest
from trading_core.bars import extra_name

FIELDS = ("open", "high", "low", "close", "volume")
_ROLES = {
    "time": ("time", "timestamp", "date", "datetime", "ts", "open_time"),
    "symbol": ("symbol", "ticker", "instrument"),
    "open": ("open", "o"),
    "high": ("high", "h"),
    "low": ("low", "l"),
    "close": ("close", "c"),
    "volume": ("volume", "vol", "v"),
}
_ROLE_OF = {alias: role for role, aliases in _ROLES.items() for alias in aliases}
TIME_NAMES = frozenset(_ROLES["time"])
_INDEX_COLUMN = "__index_level_0__"  # how pandas writes an unnamed index to Parquet
_WORD = "open|high|low|close|volume|vol"
_WIDE_NAMES = (
    re.compile(rf"^(?P<symbol>.+)[_.:/ -](?P<field>{_WORD})$", re.IGNORECASE),
    re.compile(rf"^(?P<field>{_WORD})[_.:/ -](?P<symbol>.+)$", re.IGNORECASE),
)
_ADJUSTED = re.compile(r"(^|[_.:/ -])adj(usted)?$", re.IGNORECASE)

Fields = dict[str, int]


@dataclass(frozen=True)
class Layout:
    """Positions of the columns of one file.

    Attributes:
        time: the time column.
        symbol: the column that names each row's symbol (long format), else None.
        single: the price and volume columns of a long or single-symbol file, else None.
        wide: those columns by symbol for a wide file, else empty.
        extra: other columns of a long or single-symbol file, by the name under which a rule reads them.
    """

    time: int
    symbol: int | None
    single: Fields | None
    wide: dict[str, Fields]
    extra: Fields = field(default_factory=dict)


def recognise(names: tuple[str, ...], file: str) -> Layout:
    """The layout of a file with these column names.

    Raises:
        DataError: a role is missing or claimed by two columns.
    """
    roles = _roles(names, file)
    if "time" not in roles:
        raise DataError(_missing(["time"], names, file))
    plain = {field: roles[field] for field in FIELDS if field in roles}
    wide = {} if plain else _wide(names, file)
    if wide:
        return Layout(roles["time"], None, None, wide)
    absent = [field for field in FIELDS if field not in plain]
    if absent:
        raise DataError(_missing(absent, names, file))
    extra: Fields = {}
    for position, name in enumerate(names):
        own = extra_name(name) if position not in roles.values() else None
        if own is not None:
            extra.setdefault(own, position)
    return Layout(roles["time"], roles.get("symbol"), plain, {}, extra)


def bar_columns(names: tuple[str, ...], file: str) -> list[int]:
    """Positions of the columns that bars are made of and of others that a rule can name, ascending.

    Raises:
        DataError: as `recognise`.
    """
    layout = recognise(names, file)
    fields = [layout.single or {}, layout.extra, *layout.wide.values()]
    places = {layout.time, *(place for roles in fields for place in roles.values())}
    return sorted(places if layout.symbol is None else {layout.symbol, *places})


def further_columns(names: tuple[str, ...], file: str) -> frozenset[int]:
    """Positions of the columns that are taken where they hold numbers; any other is needed.

    Raises:
        DataError: as `recognise`.
    """
    return frozenset(recognise(names, file).extra.values())


def role_of(name: str) -> str | None:
    """What a column of this name is: `time`, `symbol` or a field of a bar; None for another one."""
    return _ROLE_OF.get(re.sub(r"[\s-]+", "_", name.strip().lower()))


def _roles(names: tuple[str, ...], file: str) -> dict[str, int]:
    roles: dict[str, int] = {}
    for position, name in enumerate(names):
        role = role_of(name)
        if role is not None and role in roles:
            raise DataError(
                f"{file}: columns {names[roles[role]]!r} and {name!r} both name the {role}: keep one of them"
            )
        if role is not None:
            roles[role] = position
    if "time" not in roles and _INDEX_COLUMN in names:
        roles["time"] = names.index(_INDEX_COLUMN)
    return roles


def _wide(names: tuple[str, ...], file: str) -> dict[str, Fields]:
    groups: dict[str, Fields] = {}
    for position, name in enumerate(names):
        symbol, field = _split(name.strip())
        if not symbol or _ADJUSTED.search(symbol):
            continue
        fields = groups.setdefault(symbol, {})
        if field in fields:
            raise DataError(
                f"{file}: columns {names[fields[field]]!r} and {name!r} both name the {field} of {symbol}"
            )
        fields[field] = position
    for symbol, fields in groups.items():
        absent = [field for field in FIELDS if field not in fields]
        if absent:
            raise DataError(
                f"{file}: symbol {symbol!r} has no {', '.join(absent)} column: "
                f"name it like {names[next(iter(fields.values()))]!r}, or drop the symbol's columns"
            )
    return groups


def _split(name: str) -> tuple[str, str]:
    for pattern in _WIDE_NAMES:
        match = pattern.match(name)
        if match and match["symbol"].strip():
            return match["symbol"].strip(), _ROLE_OF[match["field"].lower()]
    return "", ""


def _missing(absent: list[str], names: tuple[str, ...], file: str) -> str:
    found = ", ".join(repr(name) for name in names[:20]) + (", ..." if len(names) > 20 else "")
    guess = nearest(absent[0], [name for name in names if name.strip().lower() not in _ROLE_OF])
    accepted = " or ".join(_ROLES[absent[0]])
    return f"{file}: no {', '.join(absent)} column among {found}; name it {accepted}.{guess}"
