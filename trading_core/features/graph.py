"""Graph: every distinct operation of the nodes given to it, numbered once, and programs cut out of it.

Equal operations on equal inputs have one number whoever asked for them, so two rules share their features and
two features their parts. The state of an operation has a fixed place from the day it is numbered: a program
cut for some outputs today and one cut for more of them tomorrow continue from the same state array.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trading_core.features.nodes import LEAVES, Node

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
NUMBER, TRUTH, BAR, CALENDAR = range(4)
"""Where an input comes from, or an output goes to; the last two are inputs only."""
_BLOCK_CELLS = 32_768  # of scratch: the rows of a block stay in the processor's cache
_BLOCK_BARS = 2_048


@dataclass(frozen=True)
class Place:
    """A column: the table it stands in, and its index there."""

    table: int
    index: int


@dataclass(frozen=True, eq=False)
class Program:
    """Operations in order, as `blocks.advance` reads them.

    Attributes:
        code: int64 (K, 8), see `recurrences.run`.
        factors: float64 (K,).
        inputs: int64 (I, 2), table and index of the column that fills scratch row i.
        outputs: int64 (O, 3), scratch row, table and index of each output.
        height: scratch rows, one free row included.
        numbers: operations that the program computes, as numbered by the graph.
    """

    code: IntArray
    factors: FloatArray
    inputs: IntArray
    outputs: IntArray
    height: int
    numbers: tuple[int, ...]

    def scratch(self, bars: int) -> FloatArray:
        """Room for blocks of at most `bars` bars: float64 (height, W)."""
        width = max(64, min(_BLOCK_BARS, _BLOCK_CELLS // self.height))
        return np.empty((self.height, min(max(bars, 1), width)))


class Graph:
    """Operations by number; inputs come before what reads them."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.parts: list[tuple[int, ...]] = []
        self.offsets: list[int] = []
        self.state_size = 0
        self._numbers: dict[tuple[object, ...], int] = {}

    def number(self, node: Node) -> int:
        """Number of a node, given on first sight."""
        return self._visit(node, {})

    def copy(self) -> "Graph":
        """An equal one that grows by itself."""
        twin = Graph()
        twin.nodes, twin.parts, twin.offsets = self.nodes.copy(), self.parts.copy(), self.offsets.copy()
        twin.state_size, twin._numbers = self.state_size, self._numbers.copy()
        return twin

    def place_of_state(self, number: int) -> slice:
        """Cells of an operation in the state array."""
        start = self.offsets[number]
        return slice(start, start + self.nodes[number].state_size)

    def program(
        self, outputs: Sequence[tuple[int, Place]], finished: Mapping[int, Place], raw: Mapping[str, Place]
    ) -> Program:
        """Operations behind some outputs.

        Args:
            outputs: number and place of each.
            finished: operations whose columns are there to be read instead of computed.
            raw: place of every leaf's column by name.
        """
        inputs, operations = self._list_needed([number for number, _ in outputs], finished)
        rows = {number: row for row, number in enumerate([*inputs, *operations])}
        places = [finished[n] if n in finished else raw[self.nodes[n].column] for n in inputs]
        return Program(
            code=_table([self._instruction(number, rows) for number in operations], 8),
            factors=np.array([self.nodes[number].scale for number in operations], dtype=np.float64),
            inputs=_table([[place.table, place.index] for place in places], 2),
            outputs=_table([[rows[number], place.table, place.index] for number, place in outputs], 3),
            height=len(rows) + 1,
            numbers=tuple(operations),
        )

    def leaves(self, numbers: Iterable[int], finished: Mapping[int, Place]) -> tuple[str, ...]:
        """Names of the columns that a program for these operations reads."""
        inputs, _ = self._list_needed(list(numbers), finished)
        return tuple(self.nodes[number].column for number in inputs if number not in finished)

    def list_computed(self, numbers: Iterable[int], finished: Mapping[int, Place]) -> list[int]:
        """Operations that a program for these outputs runs."""
        return self._list_needed(list(numbers), finished)[1]

    def _visit(self, node: Node, seen: dict[int, int]) -> int:
        if id(node) not in seen:
            parts = tuple(self._visit(part, seen) for part in node.inputs)
            key = (int(node.op), parts, node.length, node.second, node.scale, node.column)
            if key not in self._numbers:
                self._numbers[key] = len(self.nodes)
                self.nodes.append(node)
                self.parts.append(parts)
                self.offsets.append(self.state_size)
                self.state_size += node.state_size
            seen[id(node)] = self._numbers[key]
        return seen[id(node)]

    def _list_needed(self, wanted: list[int], finished: Mapping[int, Place]) -> tuple[list[int], list[int]]:
        """Columns read and operations computed for what is wanted, each ascending: parts come first."""
        seen: set[int] = set()
        inputs: list[int] = []
        operations: list[int] = []
        waiting = list(wanted)
        while waiting:
            number = waiting.pop()
            if number in seen:
                continue
            seen.add(number)
            if number in finished or self.nodes[number].op in LEAVES:
                inputs.append(number)
            else:
                operations.append(number)
                waiting.extend(self.parts[number])
        return sorted(inputs), sorted(operations)

    def _instruction(self, number: int, rows: Mapping[int, int]) -> list[int]:
        node, own = self.nodes[number], rows[number]
        parts = [rows[part] for part in self.parts[number]] or [own]
        padded = parts + [parts[0]] * (3 - len(parts))
        return [int(node.op), *padded, own, node.length, node.second, self.offsets[number]]


def _table(lines: list[list[int]], width: int) -> IntArray:
    return np.array(lines, dtype=np.int64).reshape(-1, width)
