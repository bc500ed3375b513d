"""Programs: a set of features put in order, run over blocks or single bars of one symbol with saved state.

The caller keeps the state array; a program holds none, so one program serves every symbol and a copy of the
state is a snapshot. `columns` and the live step call `advance`; nothing else computes a feature.
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from trading_core.features.nodes import RAW_COLUMNS, Node, Op
from trading_core.features.registry import resolve

FloatArray = npt.NDArray[np.float64]
BLOCK = 2_048  # bars walked at once: the rows of a usual program stay in the processor's cache


class FeatureProgram:
    """Features of one symbol, each shared part computed once.

    Attributes:
        names: the features in the order of the output rows.
        inputs: raw columns that `advance` takes, in order.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(dict.fromkeys(names))
        outputs = [resolve(name).node for name in self.names]
        rows = _rows(outputs)
        self.inputs = tuple(node.column for node in rows if node.op is Op.RAW)
        self._output_rows = np.array([rows[node] for node in outputs], dtype=np.intp)
        self._size = len(rows)
        operations = [node for node in rows if node.op is not Op.RAW]
        offsets = np.cumsum([0, *(node.state_size for node in operations)])
        self.state_size = int(offsets[-1])
        self._code = np.array(
            [
                _instruction(node, rows, int(offset))
                for node, offset in zip(operations, offsets, strict=False)
            ],
            dtype=np.int64,
        ).reshape(-1, 8)
        self._factors = np.array([node.scale for node in operations], dtype=np.float64)
        # Imported on use, so that parsing rules and printing help never load the compiler.
        from trading_core.features.recurrences import run

        self._run = run

    def initial_state(self) -> FloatArray:
        """State before the first bar: float64 (state_size,)."""
        return np.zeros(self.state_size)

    def advance(self, columns: FloatArray, state: FloatArray) -> FloatArray:
        """Features of the next B own bars.

        Args:
            columns: float64 (len(inputs), B); the symbol's present bars only.
            state: as left by the bar before; changed in place.

        Returns:
            float64 (len(names), B); NaN where unknown.
        """
        total = columns.shape[1]
        out = np.empty((len(self.names), total))
        values = np.empty((self._size, min(total, BLOCK)))
        for start in range(0, total, BLOCK):
            stop = min(start + BLOCK, total)
            if stop - start != values.shape[1]:
                values = np.empty((self._size, stop - start))
            values[: len(self.inputs)] = columns[:, start:stop]
            self._run(self._code, self._factors, state, values)
            out[:, start:stop] = values[self._output_rows]
        return out


def _rows(outputs: list[Node]) -> dict[Node, int]:
    """Row of every node: raw columns first, then operations after their inputs."""
    found: dict[Node, None] = {}
    for node in outputs:
        _visit(node, found)
    raws = sorted(
        (node for node in found if node.op is Op.RAW), key=lambda node: RAW_COLUMNS.index(node.column)
    )
    operations = [node for node in found if node.op is not Op.RAW]
    return {node: row for row, node in enumerate([*raws, *operations])}


def _visit(node: Node, found: dict[Node, None]) -> None:
    if node not in found:
        for part in node.inputs:
            _visit(part, found)
        found[node] = None


def _instruction(node: Node, rows: dict[Node, int], offset: int) -> list[int]:
    inputs = [rows[part] for part in node.inputs]
    padded = inputs + [inputs[0]] * (3 - len(inputs))
    return [int(node.op), *padded, rows[node], node.length, node.second, offset]
