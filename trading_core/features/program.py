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
_NO_TRUTHS = np.empty((0, 0), dtype=np.int8)
_NO_BARS = np.empty((0, 1))
_NONE_OF_FIVE = (_NO_BARS,) * 5


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
        self._count = len(numbers)
        self._program = graph.program(outputs, {}, raw)
        # Imported on use, so that parsing rules and printing help never load the compiler.
        from trading_core.features.blocks import advance

        self._advance = advance

    def initial_state(self) -> FloatArray:
        """State before the first bar: float64 (state_size,)."""
        return np.zeros(self.state_size)

    def advance(self, columns: FloatArray, state: FloatArray) -> FloatArray:
        """Values of the next B own bars.

        Args:
            columns: float64 (len(inputs), B); the symbol's present bars only.
            state: as left by the bar before; changed in place.

        Returns:
            float64 (outputs, B); NaN where unknown.
        """
        total, program = columns.shape[1], self._program
        out, values = np.empty((self._count, total)), program.scratch(total)
        read = np.require(columns, dtype=np.float64, requirements=["C", "W"])
        self._advance(
            program.code, program.factors, state, program.inputs, program.outputs, values,
            np.empty(values.shape[1], dtype=np.int64), _NONE_OF_FIVE, _NO_BARS, (read, _NO_TRUTHS),
            (out, _NO_TRUTHS), np.ones((total, 1), dtype=np.bool_), 0, 0, total, 0,
        )  # fmt: skip
        return out
