"""Rule columns as the kernel reads them: two tables of columns, addressed by index.

A run reads the columns of its bar series where they stand; a shadow ledger keeps copies of its own, which go
with it. A column is final as far as it goes, so installing a policy costs a few indices.
"""

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt


class EngineColumns(Protocol):
    """What the engine and the policy compiler need of rule columns."""

    @property
    def truths(self) -> npt.NDArray[np.int8]:
        """Boolean columns (K, R), R at least the rows of the bars."""

    @property
    def numbers(self) -> npt.NDArray[np.float64]:
        """Price columns (K, R)."""

    def truth(self, key: tuple[str, int], column: npt.NDArray[np.int8]) -> int:
        """Index of the boolean column of a rule text and symbol."""

    def number(self, key: tuple[str, int], column: npt.NDArray[np.float64]) -> int:
        """Index of the price column of a rule text and symbol."""

    def copy(self) -> "EngineColumns":
        """What a snapshot of the engine has to keep."""


class RuleBank:
    """Columns given by the caller: int8 (K, T) truths and float64 (K, T) prices, grown by doubling."""

    def __init__(self, rows: int) -> None:
        self._truths = np.zeros((8, rows), dtype=np.int8)
        self._numbers = np.zeros((8, rows), dtype=np.float64)
        self._truth_index: dict[tuple[str, int], int] = {}
        self._number_index: dict[tuple[str, int], int] = {}

    @property
    def truths(self) -> npt.NDArray[np.int8]:
        """Boolean columns (K, T)."""
        return self._truths

    @property
    def numbers(self) -> npt.NDArray[np.float64]:
        """Price columns (K, T)."""
        return self._numbers

    def truth(self, key: tuple[str, int], column: npt.NDArray[np.int8]) -> int:
        """Index of the boolean column of a rule text and symbol, stored on first use."""
        if key not in self._truth_index:
            k = len(self._truth_index)
            self._truths = _room(self._truths, k)
            self._truths[k] = column
            self._truth_index[key] = k
        return self._truth_index[key]

    def number(self, key: tuple[str, int], column: npt.NDArray[np.float64]) -> int:
        """Index of the price column of a rule text and symbol, stored on first use."""
        if key not in self._number_index:
            k = len(self._number_index)
            self._numbers = _room(self._numbers, k)
            self._numbers[k] = column
            self._number_index[key] = k
        return self._number_index[key]

    def copy(self) -> "RuleBank":
        """An independent copy."""
        twin = RuleBank(self._truths.shape[1])
        twin._truths, twin._numbers = self._truths.copy(), self._numbers.copy()
        twin._truth_index, twin._number_index = dict(self._truth_index), dict(self._number_index)
        return twin


def _room(bank: npt.NDArray[Any], k: int) -> npt.NDArray[Any]:
    if k < bank.shape[0]:
        return bank
    grown = np.zeros((2 * bank.shape[0], bank.shape[1]), dtype=bank.dtype)
    grown[: bank.shape[0]] = bank
    return grown
