"""Tables of trades as other programs write them, brought into the columns that the gate reads.

What a trade made is its net return; over the share of the price that its stop lay away, it is R. Where
nothing says what was risked, one unit is the median size of a trade, and the answer says so.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from schemas.errors import ConfigError, DataError, nearest
from worker.feeds.files.bar_table import BarTable, is_number, parses, without_empty_words
from worker.feeds.files.columns import Layout
from worker.feeds.files.dates import read_times
from worker.feeds.files.times import utc_labels, zone_named
from worker.studies.trade_forms import FORMS, NEEDED, OPEN, SIDES, UNRESOLVED

FloatArray = npt.NDArray[np.float64]
DAY_NS = 86_400 * 10**9
ROLES = sorted({"r", "regime", "timeframe", *(role for form in FORMS.values() for role in form)})
PASSED = ("looks", "no_learn", "reference", "position_id")
NAMES = {"playbook": "all", "regime": "any"}


@dataclass(frozen=True)
class Unit:
    """What an outcome of 1 is: R, or the return (a fraction) that counts as one."""

    name: str = "R"
    one: float | None = None


@dataclass(frozen=True)
class _Given:
    table: BarTable
    where: dict[str, int]

    def __contains__(self, role: str) -> bool:
        return role in self.where

    def column(self, role: str) -> Any:
        if role not in self.where:
            have = ", ".join(map(repr, self.table.names))
            raise DataError(
                f"{self.table.path.name}: column {role!r} is missing; there are {have}. Name it by columns "
                f"({role}=NAME), or the program that wrote the table (--read {'|'.join(FORMS)})"
            )
        return self.table.columns[self.where[role]]

    def words(self, role: str, otherwise: str = "") -> list[str]:
        """Text (n,) without outer space, `otherwise` where there is none."""
        if role not in self:
            return [otherwise] * len(self.table.columns[0])
        texts = pc.fill_null(pc.cast(self.column(role), pa.string()), "").to_pylist()
        return [str(text).strip() or otherwise for text in texts]

    def floats(self, role: str) -> FloatArray:
        """A column (n,) as numbers, NaN where empty; `4 182.78` has its blanks taken out, `+4.8%` is .048."""
        column = self.column(role)
        if not pa.types.is_string(column.type):
            return self.table.numbers(self.where[role])
        texts = without_empty_words(pc.replace_substring_regex(column, r"\s", ""))
        shares = pc.fill_null(pc.ends_with(texts, "%"), False).to_numpy(zero_copy_only=False)
        plain = replace(self.table, columns=(pc.replace_substring(texts, "%", ""),), names=(role,))
        return plain.numbers(0) / np.where(shares, 100.0, 1.0)

    def times(self, role: str, tz: str | None) -> npt.NDArray[np.int64]:
        self.column(role)
        layout = Layout(self.where[role], None, None, {})
        column, zone = read_times(self.table, layout, zone_named(tz), None, lambda note: None)
        return utc_labels(column, self.table.place, zone)

    def sides(self) -> FloatArray:
        """1 long, -1 short, 0 nothing (n,), by the sign of a size or a word."""
        if "direction" not in self:
            return np.ones(len(self.table.columns[0]))
        column = self.column("direction")
        if is_number(column.type) or (pa.types.is_string(column.type) and parses(column)):
            return np.sign(self.floats("direction"))
        words = self.words("direction")
        if odd := [row for row, word in enumerate(words) if word.lower() not in SIDES]:
            raise DataError(
                f"{self.table.place(odd[0])}: {words[odd[0]]!r} is no direction: write long or short"
            )
        return np.array([SIDES[word.lower()] for word in words], dtype=np.float64)


def adopt_trades(
    table: BarTable, read: str | None, columns: Mapping[str, str], tz: str | None, one: float | None = None
) -> tuple[BarTable, Unit]:
    """The table in the gate's own columns, without trades that are open, and what its outcomes count in.

    Args:
        table: as its program wrote it.
        read: the program; None: by its columns, else roles are the names of columns.
        columns: the name of the column of single roles.
        tz: zone of times that carry none.
        one: return that counts as one, where nothing says what was risked; None: the median size of a trade.

    Raises:
        ConfigError: no such program, or no such role.
        DataError: a column is missing, or a value of it cannot be used.
    """
    where = _places(table.names, read, columns)
    filled = {role: at for role, at in where.items() if not pa.types.is_null(table.columns[at].type)}
    given = _Given(table, filled)  # a column of nothing but None, as of stops that nobody set, is none
    sides = given.sides()
    is_open = [word.lower() in UNRESOLVED for word in given.words("open", OPEN if "open" in given else "")]
    kept = np.flatnonzero((sides != 0.0) & ~np.array(is_open))
    if not len(kept):
        raise DataError(f"{table.path.name}: no trade is resolved: there is nothing to grade")
    given, sides = _Given(take_rows(table, kept), given.where), sides[kept]
    entry = given.times("entry_time", tz)
    exit_ns = given.times("exit_time", tz) if "holding" not in given else _after(given, entry)
    r, unit = _outcomes(given, sides, one)
    made: dict[str, Any] = {
        "entry_time": pa.array(entry, pa.timestamp("ns", "UTC")),
        "exit_time": pa.array(exit_ns, pa.timestamp("ns", "UTC")),
        "r": pa.array(r),
        "timeframe": given.column("timeframe") if "timeframe" in given else _bars(entry, exit_ns),
    }
    for role, name in NAMES.items():
        made[role] = pa.array(given.words(role, name))
    if "symbol" in given:
        made |= {"symbol": pa.array(given.words("symbol")), "direction": pa.array(sides.astype(np.int64))}
    if "quantity" in given and "symbol" in given:
        made["quantity"] = pa.array(np.abs(given.floats("quantity")))
    lower = [name.strip().lower() for name in given.table.names]
    made |= {name: given.table.columns[lower.index(name)] for name in PASSED if name in lower}
    return replace(given.table, names=tuple(made), columns=tuple(made.values())), unit


def take_rows(table: BarTable, rows: npt.NDArray[np.int64]) -> BarTable:
    """Some rows of a table, which keep their places in its file."""
    of_file = np.arange(len(table.columns[0]) + len(table.omitted))
    read = np.delete(of_file, list(table.omitted))
    taken = tuple(values.take(pa.array(rows)) for values in table.columns)
    return replace(table, columns=taken, omitted=tuple(np.delete(of_file, read[rows]).tolist()))


def _places(names: tuple[str, ...], read: str | None, columns: Mapping[str, str]) -> dict[str, int]:
    if read is not None and read not in FORMS:
        raise ConfigError(f"--read {read!r} is none of {', '.join(FORMS)}.{nearest(read, FORMS)}")
    if odd := [role for role in columns if role not in ROLES]:
        raise ConfigError(
            f"columns: the role {odd[0]!r} is none of {', '.join(ROLES)}.{nearest(odd[0], ROLES)}"
        )
    lower: list[str] = []
    for name in (name.strip().lower() for name in names):
        lower.append(f"{name}.1" if name in lower else name)
    fits = (
        form
        for program, form in FORMS.items()
        if program == read or (read is None and all(form[role] in lower for role in NEEDED if role in form))
    )
    form = {role: role for role in ROLES} | next(fits, {})
    form |= {role: name.strip().lower() for role, name in columns.items()}
    if lost := [role for role in columns if form[role] not in lower]:
        raise DataError(
            f"columns: {lost[0]}={columns[lost[0]]!r}: there is no such column."
            f"{nearest(form[lost[0]], lower)}"
        )
    return {role: lower.index(name) for role, name in form.items() if name in lower}


def _after(given: _Given, entry: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The end of a holding of so many sessions, Monday to Friday, such as `5d`."""
    days = entry.astype("datetime64[ns]").astype("datetime64[D]")
    held = [int(word.rstrip("d")) for word in given.words("holding")]
    return np.busday_offset(days, held, roll="forward").astype("datetime64[ns]").astype(np.int64)


def _bars(entry: npt.NDArray[np.int64], exit_ns: npt.NDArray[np.int64]) -> Any:
    """Bars that are a day where every time is a date, else an hour: they decide how long a block is."""
    daily = not (np.concatenate((entry, exit_ns)) % DAY_NS).any()
    return pa.array(["1d" if daily else "1h"] * len(entry))


def _outcomes(given: _Given, sides: FloatArray, one: float | None) -> tuple[FloatArray, Unit]:
    if "r" in given:
        return given.floats("r"), Unit()
    made = _returns(given, sides)
    if "stop" in given and "entry_price" in given:
        entry, stop = given.floats("entry_price"), given.floats("stop")
        risked = np.abs(entry - stop) / entry
        if (np.isfinite(stop) & (stop > 0.0) & (risked > 0.0)).all():
            return made / risked, Unit()
    moved = np.abs(made[np.isfinite(made) & (made != 0.0)])
    one = one or (float(np.median(moved)) if len(moved) else 1.0)
    return made / one, Unit("return", one)


def _returns(given: _Given, sides: FloatArray) -> FloatArray:
    """Net return of each trade on its price (n,), without leverage."""
    if "return" in given:
        made = given.floats("return")
        if "holding" in given:  # what the share made, whatever was advised
            made = made * sides
        return made / given.floats("leverage") if "leverage" in given else made
    if "entry_price" not in given:
        given.column("r")  # what is missing is the outcome
    entry, leave = given.floats("entry_price"), given.floats("exit_price")
    made = sides * (leave / entry - 1.0)
    if "gross" not in given:
        return made
    gross = given.floats("gross")
    costs = np.abs(given.floats("fees")) if "fees" in given else 0.0
    costs = costs - (np.nan_to_num(given.floats("swap")) if "swap" in given else 0.0)
    return made * np.where(gross != 0.0, 1.0 - np.nan_to_num(costs) / np.where(gross != 0.0, gross, 1.0), 1.0)
