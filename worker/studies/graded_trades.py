"""The slow loop's gate on a table of resolved trades, and the document of what it found."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from schemas.canonical import ns_to_datetime
from schemas.errors import ConfigError, DataError
from schemas.playbook import PlaybookDefinition
from schemas.settings import Settings
from services.high_level.grading import shrunken_fields
from services.high_level.measured_rates import rates_for
from services.high_level.report_lines import LEVEL_SHOWN
from services.high_level.table_gate import (
    GradedCluster,
    GradedTable,
    counted_looks,
    entries_per_block,
    grade_table,
    scheduled_looks,
)
from services.high_level.trade_bounds import bounds_of, reference_of
from services.statistics.blocks import Floats
from services.statistics.calendar_units import BlockUnit, block_unit, unit_numbers
from services.statistics.drift import ARL
from services.statistics.multiplicity import CLAIMS
from services.statistics.paired import compare_pairs
from worker.feeds.files.bar_table import BarTable
from worker.feeds.files.tables import read_table
from worker.studies.foreign_trades import Unit, adopt_trades
from worker.studies.trade_file import TradeFile, is_whole, read_trades, trade_columns

SCHEDULES = ("daily", "weekly", "monthly")
SIGNIFICANT_DIGITS = 9
MOST_VARIANTS, MOST_SHOWN = 10**12, 40


@dataclass(frozen=True)
class Grading:
    """How a table is graded.

    Attributes:
        settings: the configuration in force.
        looks: a schedule, or a number of trades as text; None: those of the table, or one at the end.
        reference: what trades are held against, in R; None: as table and playbooks have it.
        books: playbooks whose declared cells join the tested family.
        program: that wrote the table; None: by its columns.
        columns: the name of the column of single roles.
        variants: tried before this one, itself among them: the level is shared with all; None: not known.
    """

    settings: Settings
    looks: str | None = None
    reference: float | None = None
    books: tuple[PlaybookDefinition, ...] = ()
    program: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    variants: int | None = None

    def __post_init__(self) -> None:
        whole = isinstance(self.variants, int) and not isinstance(self.variants, bool)
        if self.variants is not None and not (whole and 1 <= self.variants <= MOST_VARIANTS):
            given = repr(self.variants)[:MOST_SHOWN]
            raise ConfigError(f"--trials {given}: give a whole number, 1 to 10**12, this table among them")

    @property
    def definitions(self) -> dict[str, PlaybookDefinition]:
        """The playbooks by id."""
        return {item.id: item for item in self.books}

    def read(self, given: Path | BarTable, like: Unit | None = None) -> TradeFile:
        """The resolved trades of a table; outcomes count in the unit of another one, where it is a return.

        Raises:
            ConfigError: no such program or role.
            DataError: it cannot be used; see `read_trades` and `adopt_trades`.
        """
        gate, runtime, unit = self.settings.gate, self.settings.runtime, Unit()
        if not isinstance(given, BarTable):
            given = read_table(given, "at least one trade", runtime.max_bytes, self._pick)
        if self._is_foreign(given.names):
            one = None if like is None else like.one
            given, unit = adopt_trades(given, self.program, self.columns, runtime.tz, one)
        usual = {name: reference_of(item, gate) for name, item in self.definitions.items()}
        usual = {"": gate.reference_r, **usual}
        return replace(read_trades(given, runtime.tz, self.reference, usual), unit=unit)

    def _is_foreign(self, names: tuple[str, ...]) -> bool:
        own = is_whole(names) or "episode_id" in names  # a table of ours that lacks a column is refused
        return self.program is not None or bool(self.columns) or not own

    def _pick(self, names: tuple[str, ...], file: str) -> list[int]:
        return list(range(len(names))) if self._is_foreign(names) else trade_columns(names, file)

    def grade(
        self, trades: TradeFile, watched: Callable[[Iterable[int]], Iterator[int]] = iter
    ) -> GradedTable:
        """Every cluster with its grade; `watched` passes the looks on.

        Raises:
            ConfigError: the looks are neither a schedule nor a number of trades.
        """
        settings, definitions = self.settings, self.definitions
        times, most = _looks(self.looks, trades, settings), settings.envelope.max_entries_per_block
        named = sorted({*definitions, *trades.trades.playbooks})
        bounds = {name: bounds_of(definitions.get(name), settings.gate, most) for name in named}
        tried = (self.variants or 1) - 1
        return grade_table(trades.trades, settings.gate, times, definitions, watched, bounds, tried)


def _looks(option: str | None, file: TradeFile, settings: Settings) -> tuple[int, ...]:
    exits = file.trades.exit_ns
    if option is None:
        return file.looks or (int(exits.max()),)
    if file.looks is not None:
        raise ConfigError("the table has a column 'looks': leave --looks out, or remove the column")
    if option in SCHEDULES:
        return scheduled_looks(exits, option, settings.high_level.minimum_episodes)
    if option.isascii() and option.isdigit() and int(option) > 0:
        return counted_looks(exits, int(option))
    raise ConfigError(
        f"--looks {option!r} is not {', '.join(SCHEDULES)} or a number of trades: write --looks weekly"
    )


def compare_logs(first: TradeFile, second: TradeFile, settings: Settings) -> dict[str, Any]:
    """Whether one table made more than another, in pairs of the blocks in which both were trading.

    Raises:
        DataError: their outcomes do not count in the same unit, or they never traded at the same time.
    """
    if first.unit != second.unit:
        units = f"{first.unit.name} and {second.unit.name}"
        raise DataError(f"the tables count in {units}: give both a column of stops or of R")
    tables = first.trades, second.trades
    begins, ends = max(int(t.entry_ns.min()) for t in tables), min(int(t.entry_ns.max()) for t in tables)
    if begins > ends:
        raise DataError("the tables have no time in common: compare logs of the same dates")
    both = [(table.entry_ns >= begins) & (table.entry_ns <= ends) for table in tables]

    def differences(unit: BlockUnit) -> Floats:
        low, high = unit_numbers([begins, ends], unit)
        numbers = (unit_numbers(t.entry_ns[kept], unit) - low for t, kept in zip(tables, both, strict=True))
        made = [
            np.bincount(number, t.r[kept], int(high - low) + 1).astype(np.float64)
            for number, t, kept in zip(numbers, tables, both, strict=True)
        ]
        return made[0] - made[1]

    shortest = min(seconds for table in tables for seconds in table.bar_s)
    found = compare_pairs({"pair": differences}, block_unit(settings.gate.block, shortest), settings.seed)[
        "pair"
    ]
    trades = [int(kept.sum()) for kept in both]
    outside = sum(len(table.r) for table in tables) - sum(trades)
    return {**vars(found), "trades": trades, "outside": outside}


def _limits(unit: Unit, variants: int | None) -> list[str]:
    limits = []
    if unit.one is not None:
        limits.append(
            f"no column of stops says what was risked: outcomes are returns, and 1 stands for {unit.one:.4%}"
            ", the median size of a trade"
        )
    if variants is None:
        limits.append(
            "how many variants were tried is not known (trials): a grade holds for a table that was "
            "chosen before its outcomes, and says nothing about the best of many"
        )
    return limits


def gate_document(
    graded: GradedTable, settings: Settings, file: TradeFile, variants: int | None = None
) -> dict[str, Any]:
    """The JSON document: the family with its selection, and every cluster at the last look.

    Args:
        graded: the clusters with their grades.
        settings: the configuration in force.
        file: the table that was read: what was left out of it, and which rows were one position.
        variants: tried before this table, itself among them; None: not known.
    """
    family, positions = graded.family, file.positions
    limit = settings.envelope.max_entries_per_block
    limited = {"entries_per_block": entries_per_block(file.trades, settings.gate, limit)} if limit else {}
    return {
        "family": {
            "id": family.family_id,
            "size": len(family),
            "q": family.q / (1 + family.tried_before),  # what is left to this table
            "spent": _round(family.q * CLAIMS * float(family.charged.sum())),
            "selected": list(graded.selected),
            "mode": settings.gate.mode,
            "looks": len(graded.looks),
            "last_look": ns_to_datetime(graded.looks[-1]).isoformat(),
        },
        "measured": rates_for(len(family)),
        "clusters": [_cluster(item) for item in graded.clusters],
        **({} if file.no_learn is None else {"left_out": {"no_learn": file.no_learn}}),
        "positions": {**vars(positions), "merged": positions.merged},
        "unit": vars(file.unit),
        "trials": variants,
        "limits": _limits(file.unit, variants),
        **limited,
    }


def _cluster(item: GradedCluster) -> dict[str, Any]:
    seen, decision = item.measured.sample, item.verdict.decision
    first = item.first_significant_at
    return {
        "playbook": item.cluster.playbook_id,
        "regime": item.cluster.regime,
        "timeframe": item.cluster.timeframe,
        "grade": str(decision.grade),
        "n": seen.n,
        "blocks": seen.blocks,
        "block": seen.unit,
        "counted": seen.counted,
        "claim": item.verdict.claim,
        "leaning": seen.leaning,
        "mean": seen.mean_r,
        "mean_raw": seen.mean_raw,
        "mean_otherwise": None if seen.otherwise is None else seen.otherwise.mean_r,
        "reference": seen.reference,
        "e_value": seen.e_value,
        "e_losing": seen.e_values[0],
        "e_gaining": seen.e_values[1],
        "lower": item.shown.interval.lower,
        "upper": item.shown.interval.upper,
        "interval_kind": item.shown.interval.kind,
        "fixed_time": None if item.shown.fixed_time is None else list(item.shown.fixed_time),
        "smallest_detectable": item.shown.smallest_detectable,
        **shrunken_fields(item.measured),
        "blocks_needed": item.needs.blocks,
        "blocks_needed_declared": item.needs.declared,
        "years_needed": item.needs.years,
        "to_prove": item.needs.text,
        "second_opinion": None if item.second_opinion is None else item.second_opinion.payload(),
        "alpha": _round(item.verdict.alpha or 0.0),
        "decay": _decay(item),
        "strongest_action": str(decision.strongest_action),
        "reason": item.reason,
        "first_significant_at": None if first is None else ns_to_datetime(first).isoformat(),
    }


def _decay(item: GradedCluster) -> dict[str, Any] | None:
    decay = item.measured.decay
    if decay is None:
        return None
    return {
        "level": _round(min(decay.level, LEVEL_SHOWN)),
        "highest": _round(min(decay.highest, LEVEL_SHOWN)),
        "limit": ARL,
        "alarmed_at": None if item.alarm is None else ns_to_datetime(item.alarm.known_at).isoformat(),
    }


def _round(value: float) -> float:
    return float(f"{value:.{SIGNIFICANT_DIGITS}g}")
