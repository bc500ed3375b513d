"""Programs over given columns: features or other nodes of one symbol, in blocks or single bars, with state.

The caller keeps the state array; a program holds none, so one program serves every symbol and a copy of the
state is a snapshot. It runs the same compiled walk as `columns`, over arrays instead of a bar series.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from trading_core.features.graph import NUMBER, Graph, Place
from trading_core.features.nodes import Node

FloatArray = npt.NDArray[np.float64]


class NodeProgram:
    """Nodes computed together over columns that the caller has.

    Attributes:
        inputs: names of the leaves, in the order in which `advance` takes their columns.
        state_size: float64 cells of saved state.
    """

    def __init__(self, nodes: Sequence[Node]) -> None:
        graph = Graph()
        numbers = [graph.number(node) for node in nodes]
        self.inputs = graph.leaves(numbers, {})
        self.state_size = graph.state_size
        raw = {name: Place(NUMBER, k) for k, name in enumerate(self.inputs)}
        outputs = [(number, Place(NUMBER, k)) for k, number in enumerate(numbers)]
        self._program = graph.program(outputs, {}, raw)
        self._written = self._program.outputs[:, 0]
        # Imported on use, so that parsing rules and printing help never load the compiler.
        from trading_core.features.recurrences import run

        self._run = run

    def initial_state(self) -> FloatArray:
        """State before the first bar: float64 (state_size,)."""
        return np.zeros(self.state_size)

    def at_one_bar(self, inputs: Sequence[float]) -> list[float]:
        """Values of one bar with none before it, one of each output; NaN where unknown.

        Args:
            inputs: values at the bar, in the order of `inputs`.
        """
        program = self._program
        values = np.empty((program.height, 1))
        values[: len(inputs), 0] = inputs
        self._run(program.code, program.factors, self.initial_state(), values, 1)
        found: list[float] = values[self._written, 0].tolist()
        return found

    def advance(self, columns: FloatArray, state: FloatArray) -> FloatArray:
        """Values of the next B own bars.

        Args:
            columns: float64 (len(inputs), B); the symbol's present bars only.
            state: as left by the bar before; changed in place.

        Returns:
            float64 (outputs, B); NaN where unknown.
        """
        total, program = columns.shape[1], self._program
        out, values = np.empty((len(self._written), total)), program.scratch(total)
        for start in range(0, total, values.shape[1]):
            size = min(total - start, values.shape[1])
            values[: len(columns), :size] = columns[:, start : start + size]
            self._run(program.code, program.factors, state, values, size)
            out[:, start : start + size] = values[self._written, :size]
        return out
