"""Columns of a bar series: features and rules of each symbol on its own bars, made once, then extended.

A value at a bar depends on that bar and earlier ones only, so a column is final as far as it goes; rows that
the series gains are added by `extend`, and a whole history is an extension of nothing: any split of the rows
gives the same bits.

The finished columns of one symbol: stored once for the history, then extended together by one program.

A column asked for later is computed from the first row by a program of its own, which reads what is finished;
its state then joins the state of the others. Of bars that come one by one the last rows alone are kept: then
it comes from columns of all rows, which are dropped, and so does what a reader of older rows is given.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from schemas.errors import InvariantViolation
from trading_core.bars import BarSeries
from trading_core.features.bank import ColumnBank, FloatArray
from trading_core.features.crossing import check_symbol, is_crossing, parts_of, reads_others
from trading_core.features.further import check_further
from trading_core.features.graph import BAR, CALENDAR, NUMBER, TRUTH, Graph, IntArray, Place, Program
from trading_core.features.nodes import SCANNING, Node
from trading_core.features.registry import check_timeframes, resolve
from trading_core.features.sources import Made, Sources

Column = npt.NDArray[Any]  # float64 of a number, int8 of a condition


@dataclass(frozen=True, eq=False)
class Plan:
    """How nodes that are missing are computed.

    Attributes:
        graph: in which they are numbered.
        wanted: numbers of the nodes that were asked for.
        missing: numbers, each with whether it is a condition.
        nodes: the same, by node.
        program: of them; where an output lies is filled in for each symbol.
        scratch: of the program, for all rows.
        is_common: whether every symbol that has nothing yet computes them so.
    """

    graph: Graph
    wanted: Sequence[int]
    missing: dict[int, bool]
    nodes: tuple[tuple[Node, bool], ...]
    program: Program
    scratch: tuple[FloatArray, IntArray]
    is_common: bool

    def program_of(self, places: Iterable[Place]) -> Program:
        """The program that writes to these places."""
        plain, outputs = self.program, self.program.outputs.copy()
        outputs[:, 2] = [place.index for place in places]
        return Program(plain.code, plain.factors, plain.inputs, outputs, plain.height, plain.numbers)


class SymbolColumns:
    """Nodes of symbol `s` whose columns are finished up to `sources.rows`."""

    def __init__(self, sources: Sources, s: int) -> None:
        self._sources = sources
        self._s = s
        self._graph: Graph | None = None
        self._is_shared = False  # with other symbols, by a plan
        self._finished: dict[int, Place] = {}
        self._state = np.zeros(0)
        self._program: Program | None = None  # of all finished columns; None until it is needed again

    def store(self, wanted: Sequence[tuple[Node, bool]]) -> list[Place]:
        """Places of nodes, each told with whether it is a condition; what is missing is computed."""
        return self._store(wanted)[0]

    def store_alike(
        self, wanted: Sequence[tuple[Node, bool]], plan: Plan | None
    ) -> tuple[list[Place], Plan | None]:
        """As `store`, by the plan of another symbol that had nothing; and the plan for the next one."""
        if self._graph is None and plan is not None:
            self._graph, self._is_shared = plan.graph, True
            self._carry_out(plan)
            return [self._finished[number] for number in plan.wanted], plan
        is_first = self._graph is None
        places, made = self._store(wanted)
        if not is_first or made is None or not made.is_common:
            return places, plan
        self._is_shared = True
        return places, made

    def _store(self, wanted: Sequence[tuple[Node, bool]]) -> tuple[list[Place], Plan | None]:
        if self._graph is None:
            self._graph = Graph()
        elif self._is_shared:
            self._graph, self._is_shared = self._graph.copy(), False
        numbers = [self._graph.number(node) for node, _ in wanted]
        missing = {n: truth for n, (_, truth) in zip(numbers, wanted, strict=True) if n not in self._finished}
        plan = self._plan(self._graph, numbers, missing) if missing else None
        if plan is not None:
            self._carry_out(plan)
        return [self._finished[number] for number in numbers], plan

    def extend(self, start: int, stop: int) -> None:
        """Compute the rows start..stop of everything stored, in one call of compiled code."""
        if self._graph is None or not self._finished:
            return
        if self._program is None:
            names = self._graph.leaves(self._finished, {})
            outputs = list(self._finished.items())
            self._program = self._graph.program(outputs, {}, self._sources.places(names, self._s))
            self._step = _scratch(self._program, 1)
        scratch = self._step if stop - start == 1 else _scratch(self._program, stop - start)
        self._sources.run(self._program, self._state, scratch, self._s, start, stop)

    def _plan(self, graph: Graph, wanted: Sequence[int], missing: dict[int, bool]) -> Plan:
        for number in graph.list_computed(missing, self._finished):
            if graph.nodes[number].op in SCANNING:
                missing.setdefault(number, False)
        raw = self._sources.places(graph.leaves(missing, self._finished), self._s)
        outputs = [(number, Place(TRUTH if truth else NUMBER, -1)) for number, truth in missing.items()]
        is_common = not self._finished and all(place.table in (BAR, CALENDAR) for place in raw.values())
        nodes = tuple((graph.nodes[number], truth) for number, truth in missing.items())
        program = graph.program(outputs, self._finished, raw)
        scratch = _scratch(program, self._sources.rows)
        return Plan(graph, wanted, missing, nodes, program, scratch, is_common)

    def _carry_out(self, plan: Plan) -> None:
        sources = self._sources
        conditions = sum(plan.missing.values())
        sources.bank.expect(conditions, len(plan.missing) - conditions)
        places = [sources.bank.new(truth) for truth in plan.missing.values()]
        state = np.zeros(plan.graph.state_size)
        if sources.bank.first:
            self._take_over(plan, places, state)
        else:
            sources.run(plan.program_of(places), state, plan.scratch, self._s, 0, sources.rows)
        if self._finished:
            new, state = state, np.concatenate([self._state, np.zeros(state.size - self._state.size)])
            for number in plan.program.numbers:
                cells = plan.graph.place_of_state(number)
                state[cells] = new[cells]
        self._state = state
        self._finished.update(zip(plan.missing, places, strict=True))
        self._program = None
        sources.made.append((self._s, plan.nodes))

    def _take_over(self, plan: Plan, places: Sequence[Place], state: FloatArray) -> None:
        """The kept rows of new columns, and the state behind them, from columns of all rows."""
        whole = SymbolColumns(self._sources.whole_of(self._s), self._s)
        for place, found in zip(places, whole.store(plan.nodes), strict=True):
            self._sources.bank.fill(place, whole._sources.bank.column(found, self._sources.rows))
        graph = whole._graph or Graph()
        for number in plan.program.numbers:
            cells = graph.place_of_state(graph.number(plan.graph.nodes[number]))
            state[plan.graph.place_of_state(number)] = whole._state[cells]


def _scratch(program: Program, bars: int) -> tuple[FloatArray, IntArray]:
    values = program.scratch(bars)
    return values, np.empty(values.shape[1], dtype=np.int64)


def compute(bars: BarSeries, names: Iterable[str]) -> dict[str, FloatArray]:
    """Features of every symbol: name -> float64 (T, S), NaN until warm and where the bar is absent.

    Raises:
        RuleError: an unknown feature name.
    """
    columns = FeatureColumns(bars)
    return {name: columns.scatter(name) for name in columns.load(names)}


class FeatureColumns:
    """Finished columns of one bar series, shared by whoever reads them.

    Args:
        bars: the series.
        grows: whether it gets its rows one by one: then the bank keeps the last ones alone.
    """

    def __init__(self, bars: BarSeries, *, grows: bool = False) -> None:
        self._sources = Sources(bars, self.place, self.column, lambda s: self.whole(s)._sources, grows=grows)
        self._whole: tuple[int, FeatureColumns] | None = None  # and of which symbol
        self._symbols = [SymbolColumns(self._sources, s) for s in range(len(bars.symbols))]
        self._crossing: dict[int, SymbolColumns] = {}
        self._own_rows: dict[int, _OwnRows] = {}
        self._places: dict[tuple[str, int], Place] = {}
        self._views: dict[tuple[Place, int], Column] = {}

    @property
    def bars(self) -> BarSeries:
        """The series as last followed."""
        return self._sources.bars

    @property
    def bank(self) -> ColumnBank:
        """The tables behind `place`, from row `first` on.

        Read them anew after every `extend` or `load`, they may have moved.
        """
        return self._sources.bank

    @property
    def length(self) -> int:
        """Rows that every column has."""
        return self._sources.rows

    def extend(self, bars: BarSeries | None = None) -> None:
        """Follow the series to its new rows: whatever has been loaded is computed for them.

        Args:
            bars: the longer series, the same up to `length`; None: the series itself has grown.

        Raises:
            InvariantViolation: the series is shorter than its columns.
        """
        sources, start = self._sources, self._sources.rows
        sources.bars = bars if bars is not None else sources.bars
        stop = sources.bars.shape[0]
        if stop < start:
            raise InvariantViolation(f"{stop} rows after {start}: a series that is followed can only grow")
        if stop == start:
            return
        sources.grow()
        for symbol in self._symbols:
            symbol.extend(start, stop)
        sources.crossing.extend(sources.bars, start, stop)
        for s in sorted(self._crossing):
            self._crossing[s].extend(start, stop)
        sources.rows = stop
        self._views.clear()
        self._whole = None

    def whole(self, s: int) -> "FeatureColumns":
        """Columns of all rows of symbol s: these, or where rows are gone others, until another is asked for.

        Raises:
            InvariantViolation: the bars have rows that the columns have not.
        """
        if not self.bank.first:
            return self
        if self._whole is None or self._whole[0] != s:
            self._whole = s, FeatureColumns(self.bars)
        found = self._whole[1]
        if found.length != self.length:
            raise InvariantViolation(f"columns of {self.length} rows were not extended to {found.length}")
        return found

    @property
    def made(self) -> tuple[Made, ...]:
        """What columns were made for, in order; see `make_again`."""
        return tuple(self._sources.made)

    def make_again(self, made: Iterable[Made]) -> None:
        """Make columns in the order of another instance: whoever kept a place finds the same column there.

        Raises:
            InvariantViolation: this instance has made others already.
        """
        made = tuple(made)
        begun = len(self._sources.made)
        if self.made != made[:begun]:
            raise InvariantViolation("columns were made in another order: places do not mean the same")
        for s, nodes in made[begun:]:
            self.store(nodes, s)

    def rows(self, s: int) -> npt.NDArray[np.intp]:
        """Row numbers of symbol s's present bars, ascending."""
        return self._own_rows.setdefault(s, _OwnRows(s)).upto(self.bars.present, self.length)

    def load(self, names: Iterable[str], symbols: Iterable[int] | None = None) -> tuple[str, ...]:
        """Compute several features together, which shares their parts; returns the names without repeats.

        Raises:
            RuleError: an unknown feature name, or a higher timeframe or symbol that the bars do not have.
        """
        wanted = tuple(dict.fromkeys(names))
        self.check(wanted)
        for s in range(len(self._symbols)) if symbols is None else symbols:
            missing = [name for name in wanted if (name, s) not in self._places]
            if missing:
                places = self.store([(resolve(name).node, False) for name in missing], s)
                self._places.update({(name, s): place for name, place in zip(missing, places, strict=True)})
        return wanted

    def check(self, names: Iterable[str]) -> None:
        """Make sure that every feature can be had from these bars.

        Raises:
            RuleError: one cannot; names it and says why.
        """
        wanted = tuple(names)
        check_timeframes(wanted, self.bars.timeframe)
        for name in wanted:
            if is_crossing(name):
                check_symbol(name, self.bars.symbols)
                name, _ = parts_of(name)
            check_further(name, self.bars)

    def place(self, name: str, s: int) -> Place:
        """Where the feature's column stands in `bank`."""
        self.load([name], [s])
        return self._places[name, s]

    def column(self, name: str, s: int) -> FloatArray:
        """The feature of symbol s as float64 (T,), NaN where the bar is absent. Shared: only read it."""
        whole = self.whole(s)
        return whole.bank.column(whole.place(name, s), self.length)

    def own(self, name: str, s: int) -> FloatArray:
        """The feature on symbol s's present bars: float64 (rows(s).size,). Shared: do not write to it."""
        place = self.place(name, s)
        if (place, s) not in self._views:
            full, rows = self.column(name, s), self.rows(s)
            self._views[place, s] = full if rows.size == full.size else full[rows]
        return self._views[place, s]

    def scatter(self, name: str) -> FloatArray:
        """The feature as float64 (T, S), NaN where a bar is absent."""
        return np.column_stack([self.column(name, s) for s in range(len(self._symbols))])

    def store(self, wanted: Sequence[tuple[Node, bool]], s: int) -> list[Place]:
        """Places of nodes' columns for symbol s, each told with whether it is a condition.

        What is missing is computed in one pass, and in one more what reads other symbols; columns of
        conditions lie in the truths.
        """
        crossing = [reads_others(node) for node, _ in wanted]
        if not any(crossing):
            return self._symbols[s].store(wanted)
        found: dict[int, Place] = {}
        of_others = self._crossing.setdefault(s, SymbolColumns(self._sources, s))
        for side, columns in ((False, self._symbols[s]), (True, of_others)):
            of_side = [k for k, is_one in enumerate(crossing) if is_one == side]
            found |= zip(of_side, columns.store([wanted[k] for k in of_side]), strict=True)
        return [found[k] for k in range(len(wanted))]

    def store_everywhere(self, wanted: Sequence[tuple[Node, bool]]) -> Iterator[list[Place]]:
        """`store` of each symbol in order; of those that have nothing yet the first is planned for all."""
        crossing, plan = any(reads_others(node) for node, _ in wanted), None
        for s, symbol in enumerate(self._symbols):
            if crossing:
                yield self.store(wanted, s)
            else:
                places, plan = symbol.store_alike(wanted, plan)
                yield places

    def window(self, node: Node, truth: bool, back: int, s: int, start: int, stop: int) -> Column:
        """Rows start..stop of a node over stored features, computed from `back` own bars before; not kept.

        Args:
            node: its leaves are `nodes.stored`, named after features.
            truth: whether it is a condition.
            back: own bars before the current one that the node reads at most.
            s: symbol index.
            start: first row wanted.
            stop: the row behind the last.
        """
        first = self._row_before(s, start, back)
        if first < self.bank.first:
            return self.whole(s).window(node, truth, back, s, start, stop)
        graph = Graph()
        number = graph.number(node)
        raw = {name: self.place(name, s) for name in graph.leaves([number], {})}
        program = graph.program([(number, Place(TRUTH if truth else NUMBER, 0))], {}, raw)
        out = np.empty((1, stop - first)), np.empty((1, stop - first), dtype=np.int8)
        values = program.scratch(stop - first)
        scratch = values, np.empty(values.shape[1], dtype=np.int64)
        self._sources.run(program, np.zeros(graph.state_size), scratch, s, first, stop, out, first)
        return out[int(truth)][0, start - first :]

    def _row_before(self, s: int, start: int, back: int) -> int:
        """Row of the present bar so many before the first at or after `start`; 0 when there are too few."""
        rows = self.rows(s)
        index = int(np.searchsorted(rows, start)) - back
        if index <= 0:
            return 0
        return start if index == rows.size else min(start, int(rows[index]))


class _OwnRows:
    """Rows of one symbol's present bars, found once each."""

    def __init__(self, s: int) -> None:
        self._s = s
        self._found = np.empty(0, dtype=np.intp)
        self._count = 0
        self._seen = 0

    def upto(self, present: npt.NDArray[np.bool_], rows: int) -> npt.NDArray[np.intp]:
        if rows > self._seen:
            new = np.flatnonzero(present[self._seen : rows, self._s]) + self._seen
            count = self._count + new.size
            if count > self._found.size:
                grown = np.empty(2 * count, dtype=np.intp)
                grown[: self._count] = self._found[: self._count]
                self._found = grown
            self._found[self._count : count] = new
            self._count, self._seen = count, rows
        return self._found[: self._count]
