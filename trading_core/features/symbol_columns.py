"""The finished columns of one symbol: stored once for the history, then extended together by one program.

A column asked for later is computed from the first row by a program of its own, which reads what is finished;
its state then joins the state of the others.
"""

from collections.abc import Sequence

import numpy as np

from trading_core.features.bank import FloatArray
from trading_core.features.graph import Graph, IntArray, Place, Program
from trading_core.features.nodes import SCANNING, Node
from trading_core.features.sources import Sources


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

    def store(self, wanted: Sequence[tuple[Node, bool]]) -> list[Place]:
        """Places of nodes, each told with whether it is a condition; what is missing is computed."""
        numbers = [self._graph.number(node) for node, _ in wanted]
        missing = {n: truth for n, (_, truth) in zip(numbers, wanted, strict=True) if n not in self._finished}
        if missing:
            nodes = tuple((self._graph.nodes[n], truth) for n, truth in missing.items())
            self._compute(missing)
            self._sources.made.append((self._s, nodes))
        return [self._finished[number] for number in numbers]

    def extend(self, start: int, stop: int) -> None:
        """Compute the rows start..stop of everything stored, in one call of compiled code."""
        if not self._finished:
            return
        if self._program is None:
            names = self._graph.leaves(self._finished, {})
            outputs = list(self._finished.items())
            self._program = self._graph.program(outputs, {}, self._sources.places(names))
            self._step = _scratch(self._program, 1)
        scratch = self._step if stop - start == 1 else _scratch(self._program, stop - start)
        self._sources.run(self._program, self._state, scratch, self._s, start, stop)

    def _compute(self, missing: dict[int, bool]) -> None:
        graph, rows = self._graph, self._sources.rows
        for number in graph.computed(missing, self._finished):
            if graph.nodes[number].op in SCANNING:
                missing.setdefault(number, False)
        raw = self._sources.places(graph.leaves(missing, self._finished))
        new = {number: self._sources.bank.new(truth) for number, truth in missing.items()}
        program = graph.program(list(new.items()), self._finished, raw)
        state = np.zeros(graph.state_size)
        self._sources.run(program, state, _scratch(program, rows), self._s, 0, rows)
        self._state = np.concatenate([self._state, np.zeros(graph.state_size - self._state.size)])
        for number in program.numbers:
            cells = graph.place_of_state(number)
            self._state[cells] = state[cells]
        self._finished.update(new)
        self._program = None


def _scratch(program: Program | None, bars: int) -> tuple[FloatArray, IntArray]:
    values = np.empty((1, 1)) if program is None else program.scratch(bars)
    return values, np.empty(values.shape[1], dtype=np.int64)
