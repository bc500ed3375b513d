"""Columns that are known by no name: named by the operator, or guessed for the refusal that asks for them.

A guess is shown and never used: it says which four columns can be prices in every row that was looked at,
whatever their names and order.
"""

import warnings
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt

from schemas.errors import DataError, nearest
from worker.feeds.files.columns import FEWEST, FIELDS, PRICES
from worker.feeds.files.names import bare_name, role_of
from worker.feeds.files.shapes import Rows, read_number

ROLES = ("time", "clock", "symbol", *FIELDS, "adjusted")
_WIDEST, _MOST = 64, 16  # columns, and columns of numbers, that are looked at
_FIRST_TIME = 1e7  # dates without separators and epochs; no price reaches it
_TURNS, _FEW_ROWS = 0.05, 20  # the least share of rows in which each of open and close leads; of so many rows
_NARROW = 1.25  # times the narrowest range: bid and ask of one bar differ by less
_NEAR = 0.5  # of each other bid and ask are
_ENDS = ("close", "end")  # of the bar; a name that begins so is of a time only where the numbers are times
_NAMED_SO = {"time": "date", "clock": "time"}  # where the time of the day stands in a column of its own

FloatArray = npt.NDArray[np.float64]


def given_columns(text: str | None) -> dict[str, str]:
    """The column of each role as an operator names it: `time=Fecha,open=Apertura`.

    Raises:
        DataError: no such role.
    """
    found: dict[str, str] = {}
    role = ""
    for part in (text or "").split(","):
        name, mark, column = part.partition("=")
        if mark and name.strip() in ROLES:
            role = name.strip()
            found[role] = column
        elif role:
            found[role] += f",{part}"  # a name may hold a comma
        elif text:
            raise DataError(f"--columns {part!r} is not ROLE=NAME with a role of {', '.join(ROLES)}")
    return found


def rename(names: tuple[str, ...], columns: Mapping[str, str], file: str) -> tuple[str, ...]:
    """The names with those of the given columns by their roles; what else claims such a role is another.

    Raises:
        DataError: a column that is not there.
    """
    roles: dict[int, str] = {}
    for role, name in columns.items():
        place = names.index(name) if name in names else int(name) - 1 if name.isdecimal() else -1
        if not 0 <= place < len(names):
            raise DataError(
                f"{file} has no column {name!r}, which --columns names as the {role}: it has "
                f"{', '.join(map(repr, names[:20]))}.{nearest(name, names)}"
            )
        roles[place] = _NAMED_SO.get(role, role) if "clock" in columns else role
    left = [f"other_{name}" if role_of(name) in columns else name for name in names]
    return tuple(roles.get(place, name) for place, name in enumerate(left))


def guess_columns(names: Sequence[str], rows: Rows) -> str:
    """The option that names the columns as their numbers make likely, or that none can, as a remedy.

    Empty where no four can be prices. Columns without a name are told by their number, from 1.
    """
    rows = [row for row in rows if len(row) == len(names)]
    if not FEWEST <= len(names) <= _WIDEST or len(rows) < 2:
        return ""
    table = np.array([[read_number(cell) for cell in row] for row in rows])
    texts, places = list(zip(*rows, strict=True)), range(len(names))
    moments = {place: _moments(texts[place], table[:, place]) for place in places}
    time = _time(texts, table, moments)
    numeric = [place for place in places if moments[place].size == 0 and np.isfinite(table[:, place]).all()]
    steps = np.zeros(1) if time is None else np.diff(moments[time])
    prices = _prices(table, names, numeric[:_MOST], float(np.sign(steps.sum())))
    if time is None or not prices:
        return ""
    if parts := _parts(table, names, [*prices.values()]):
        named = f"{parts[0]!r} and {parts[1]!r}"
        return f"a price is in two fields, such as {named}, which no option joins: write one"
    found = {"time": time} | prices
    before = [place for place in range(min(prices.values())) if place != time and all(texts[place])]
    words = [place for place in before if not moments[place].size and all(map(_has_letter, texts[place]))]
    clocks = [place for place in before if all(":" in cell for cell in texts[place])]
    found |= {role: places[0] for role, places in (("symbol", words), ("clock", clocks)) if places}
    found |= _volume(table, names, numeric, [*prices.values()])
    known = [role_of(name) for name in names]
    answer = {role: place for role, place in found.items() if known[place] != role or known.count(role) > 1}
    if ":" in texts[time][0]:
        answer.pop("clock", None)
    line = ",".join(f"{role}={_spell(names, answer[role])}" for role in ROLES if role in answer)
    is_end = found["time"] in answer.values() and bare_name(names[time]).startswith(_ENDS)
    return (
        "guessed by the order of the numbers, so look it over before you add it: "
        f"--columns '{line}'{' --label close' if is_end else ''}"
    )


def _parts(table: FloatArray, names: Sequence[str], prices: Sequence[int]) -> tuple[str, ...]:
    """Two names of one price, of which the second is at another level, as units and nano; else none."""
    whole = [name.rpartition(".")[0] for name in names]
    if len({whole[place] for place in prices} - {""}) < len(PRICES):
        return ()
    for place in prices:
        for other in (
            k for k, name in enumerate(whole) if name == whole[place] and np.isfinite(table[:, k]).all()
        ):
            if abs(float(np.median(table[:, other] / table[:, place])) - 1.0) > _NEAR:
                return names[place], names[other]
    return ()


def _spell(names: Sequence[str], place: int) -> str:
    """A column by its name, or by its number where a shell or a terminal could take the name amiss."""
    name = names[place]
    plain = name.isprintable() and name.strip() and not set(name) & set("'=%\\") and names.count(name) == 1
    return name if plain else str(place + 1)


def _time(texts: Sequence[Sequence[str]], table: FloatArray, moments: Mapping[int, FloatArray]) -> int | None:
    """The column whose times are spaced most evenly, or else the first that has a digit in each word."""
    timed = [place for place, each in moments.items() if each.size]
    if timed:
        return max(timed, key=lambda place: (_regularity(moments[place]), -place))
    words = (place for place in moments if np.isnan(table[:, place]).all())
    return next((place for place in words if all(map(_has_digit, texts[place]))), None)


def _moments(texts: Sequence[str], numbers: FloatArray) -> FloatArray:
    """Cells as times that go one way; empty where they are none."""
    import pandas as pd

    found = [numbers] if (numbers >= _FIRST_TIME).all() else []
    if not np.isfinite(numbers).any() and all(map(_has_digit, texts)):
        for day_first in (False, True):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that the form is a guess
                stamps = pd.to_datetime(
                    pd.Series(texts), errors="coerce", format="mixed", utc=True, dayfirst=day_first
                )
            found += [stamps.astype("int64").to_numpy().astype(np.float64)] if stamps.notna().all() else []
    for moments in found:
        steps = np.diff(moments)
        if steps.any() and ((steps >= 0).all() or (steps <= 0).all()):
            return moments
    return numbers[:0]


def _regularity(moments: FloatArray) -> float:
    """The share of the most frequent step: labels of bars are spaced evenly, moments of trades are not."""
    steps = np.diff(moments)
    return round(float(np.unique(steps[steps != 0], return_counts=True)[1].max() / steps.size), 1)


def _prices(
    table: FloatArray, names: Sequence[str], places: Sequence[int], direction: float
) -> dict[str, int]:
    """The four columns that can be prices in every row: of several narrow ones those that are evenly spaced.

    Of the two inside the range, which lead in turns, the open lies nearest to the close before it.
    """
    found = []
    for four in combinations(places, 4):
        values = table[:, four]
        high, low = int(values.sum(axis=0).argmax()), int(values.sum(axis=0).argmin())
        inner = [k for k in range(4) if k not in (high, low)]
        if (
            len(inner) != 2
            or not ((values[:, high] >= values.T) & (values[:, low] <= values.T) & (values.T > 0)).all()
        ):
            continue
        rises = np.sign(values[:, inner[1]] - values[:, inner[0]])
        if len(rises) >= _FEW_ROWS and min((rises >= 0).mean(), (rises <= 0).mean()) < _TURNS:
            continue
        width = float(np.median(np.log(values[:, high] / values[:, low])))
        uneven = len({*np.diff([places.index(place) for place in four]).tolist()}) > 1
        for opens, close in (inner, inner[::-1]):
            before, later = (values[:-1], values[1:]) if direction >= 0 else (values[1:], values[:-1])
            pause = float(np.abs(later[:, opens] - before[:, close]).sum()) if direction else 0.0
            roles = dict(zip(PRICES, (four[opens], four[high], four[low], four[close]), strict=True))
            if all(role_of(names[place]) in (None, role) for role, place in roles.items()):
                found.append((width, uneven, pause, opens > close, roles))
    narrow = (
        [each for each in found if each[0] <= _NARROW * min(width for width, *_ in found)] if found else []
    )
    return min(narrow, key=lambda each: each[1:4])[-1] if narrow else {}


def _volume(
    table: FloatArray, names: Sequence[str], numeric: Sequence[int], prices: Sequence[int]
) -> dict[str, int]:
    """A column that is no price, by a name like a volume or the first behind the prices; if there is one."""
    level = table[:, list(prices)].mean(axis=1)
    found = [
        ("vol" not in bare_name(names[place]), place < max(prices), place)
        for place in numeric
        if place not in prices and (table[:, place] >= 0).all()
        if round(float(np.median(table[:, place] / level)), 1) != 1.0
    ]
    return {"volume": min(found)[-1]} if found else {}


def _has_letter(text: str) -> bool:
    return any(map(str.isalpha, text))


def _has_digit(text: str) -> bool:
    return any(map(str.isdigit, text))
