"""Columns of a bar series: features and rules of each symbol on its own bars, made once, then extended.

A value at a bar depends on that bar and earlier ones only, so a column is final as far as it goes; rows that
the series gains are added by `extend`, and a whole history is an extension of nothing: any split of the rows
gives the same bits.

The finished columns of one symbol: stored once for the history, then extended together by one program.

A column asked for later is computed from the first row by a program of its own, which reads what is finished;
its state then joins the state of the others. Of bars that come one by one the last rows alone are kept: then
it comes from a store of all rows, which is dropped, and so does what a reader of older rows is given.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from schemas.errors import InvariantViolation
from trading_core.bars import BarSeries
from trading_core.features.bank import ColumnBank, FloatArray
from trading_core.features.crossing import check_symbol, is_crossing, parts_of, reads_others
from trading_core.features.further import check_further
from trading_core.features.graph import NUMBER, TRUTH, Graph, IntArray, Place, Program
from trading_core.features.nodes import SCANNING, Node
from trading_core.features.registry import check_timeframes, resolve
from trading_core.features.sources import Made, Sources

Column = npt.NDArray[Any]  # float64 of a number, int8 of a condition


class SymbolColumns:
    """Nodes of symbol `s` whose columns are finished up to `sources.rows`."""

    def __init__(self, sources: Sources, s: int) -> None:
        self._sources = sources
        self._s = s
        self._graph = Graph()
        self._finished: dict[int, Place] = {}
        self._state = np.zeros(0)
        self._program: Program | None = None  # of all finished columns; None until it is needed again
        self._step = _scratch(None, 1)

    def store(
        self, wanted: Sequence[tuple[Node, bool]], whole: "Callable[[], SymbolColumns] | None" = None
    ) -> list[Place]:
        """Places of nodes, each told with whether it is a condition; what is missing is computed.

        Where rows are gone, `whole` makes the same columns of all rows, of which the last are taken.
        """
        numbers = [self._graph.number(node) for node, _ in wanted]
        missing = {n: truth for n, (_, truth) in zip(numbers, wanted, strict=True) if n not in self._finished}
        if missing:
            nodes = tuple((self._graph.nodes[n], truth) for n, truth in missing.items())
            self._compute(missing, None if whole is None else whole())
            self._sources.made.append((self._s, nodes))
        return [self._finished[number] for number in numbers]

    def extend(self, start: int, stop: int) -> None:
        """Compute the rows start..stop of everything stored, in one call of compiled code."""
        if not self._finished:
            return
        if self._program is None:
            names = self._graph.leaves(self._finished, {})
            outputs = list(self._finished.items())
            self._program = self._graph.program(outputs, {}, self._sources.places(names, self._s))
            self._step = _scratch(self._program, 1)
        scratch = self._step if stop - start == 1 else _scratch(self._program, stop - start)
        self._sources.run(self._program, self._state, scratch, self._s, start, stop)

    def forget(self, used: tuple[int, int]) -> None:
        """Forget the columns that were made since the bank used so many."""
        kept = {n: place for n, place in self._finished.items() if place.index < used[place.table]}
        if len(kept) < len(self._finished):
            self._finished, self._program = kept, None

    def _compute(self, missing: dict[int, bool], whole: "SymbolColumns | None") -> None:
        graph, rows = self._graph, self._sources.rows
        for number in graph.list_computed(missing, self._finished):
            if graph.nodes[number].op in SCANNING:
                missing.setdefault(number, False)
        leaves = graph.leaves(missing, self._finished)
        raw = self._sources.places(leaves, self._s, None if whole is None else whole._sources)
        new = {number: self._sources.bank.new(truth) for number, truth in missing.items()}
        program = graph.program(list(new.items()), self._finished, raw)
        self._state = np.concatenate([self._state, np.zeros(graph.state_size - self._state.size)])
        if whole is not None:
            self._take(whole, new, program.numbers)
        else:
            state = np.zeros(graph.state_size)
            self._sources.run(program, state, _scratch(program, rows), self._s, 0, rows)
            for number in program.numbers:
                cells = graph.place_of_state(number)
                self._state[cells] = state[cells]
        self._finished.update(new)
        self._program = None

    def _take(self, whole: "SymbolColumns", new: dict[int, Place], numbers: Iterable[int]) -> None:
        """The last rows of new columns, and the state of the operations behind them."""
        nodes, theirs = self._graph.nodes, whole._graph
        for number, place in new.items():
            column = whole._sources.bank.column(
                whole._finished[theirs.number(nodes[number])], self._sources.rows
            )
            self._sources.bank.fill(place, column)
        for number in numbers:
            cells = theirs.place_of_state(theirs.number(nodes[number]))
            self._state[self._graph.place_of_state(number)] = whole._state[cells]


def _scratch(program: Program | None, bars: int) -> tuple[FloatArray, IntArray]:
    values = np.empty((1, 1)) if program is None else program.scratch(bars)
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

    Attributes:
        before_leaving: told the first row that is kept before older ones go.
    """

    def __init__(self, bars: BarSeries, *, grows: bool = False) -> None:
        self._sources = Sources(bars, self.place, grows=grows)
        self.before_leaving: list[Callable[[int], None]] = []
        self._symbols = [SymbolColumns(self._sources, s) for s in range(len(bars.symbols))]
        self._crossing = [SymbolColumns(self._sources, s) for s in range(len(bars.symbols))]
        self._own_rows = [_OwnRows(s) for s in range(len(bars.symbols))]
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
        if sources.bank.next_first > sources.bank.first:
            for tell in self.before_leaving:
                tell(sources.bank.next_first)
        sources.grow()
        for symbol in self._symbols:
            symbol.extend(start, stop)
        sources.crossing.extend(sources.bars, start, stop)
        for symbol in self._crossing:
            symbol.extend(start, stop)
        sources.rows = stop
        self._views.clear()

    @property
    def whole(self) -> "FeatureColumns":
        """Columns of all rows that the bars have: these, or where rows are gone others, computed anew."""
        return FeatureColumns(self.bars) if self.bank.first else self

    @contextmanager
    def borrow(self) -> Iterator["FeatureColumns"]:
        """`whole` for a reader that copies what it needs: the bank gets back what is made meanwhile."""
        whole = self.whole
        used, made, named = whole.bank.used, len(whole._sources.made), len(whole._places)
        try:
            yield whole
        finally:
            whole._forget(used, made, named)

    def _forget(self, used: tuple[int, int], made: int, named: int) -> None:
        for s in {s for s, _ in self._sources.made[made:]}:
            self._symbols[s].forget(used)
            self._crossing[s].forget(used)
            self._views.clear()
        while len(self._places) > named:
            self._places.popitem()
        self._sources.forget(used, made)

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
        return self._own_rows[s].upto(self.bars.present, self.length)

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
        whole = self.whole
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
            return self._symbols[s].store(wanted, self._maker(s, wanted, crossing=False))
        found: dict[int, Place] = {}
        for side, columns in ((False, self._symbols[s]), (True, self._crossing[s])):
            of_side = [k for k, is_one in enumerate(crossing) if is_one == side]
            part = [wanted[k] for k in of_side]
            found |= zip(of_side, columns.store(part, self._maker(s, part, crossing=side)), strict=True)
        return [found[k] for k in range(len(wanted))]

    def _maker(
        self, s: int, wanted: Sequence[tuple[Node, bool]], *, crossing: bool
    ) -> Callable[[], SymbolColumns] | None:
        if self.bank.first == 0:
            return None

        def make() -> SymbolColumns:
            whole = self.whole
            if whole.length != self.length:
                raise InvariantViolation(f"columns of {self.length} rows were not extended to {whole.length}")
            whole.store(wanted, s)
            return (whole._crossing if crossing else whole._symbols)[s]

        return make

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
            return self.whole.window(node, truth, back, s, start, stop)
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
