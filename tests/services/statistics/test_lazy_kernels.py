"""Functions that are compiled when that pays: the same figures in both ways, and when each way is taken."""

import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

from services.statistics import lazy_kernels
from services.statistics.lazy_kernels import Kernels
from tests.services.statistics.plain_tracks import figures

ROOT = Path(__file__).parents[3]
SUM = """
import sys
import numpy as np
from services.statistics.lazy_kernels import Kernels

KERNELS = Kernels()

@KERNELS.kernel
def total(values):
    found = 0.0
    for value in values:
        found += value
    return found

for size in {sizes}:
    total(np.ones(size))
    print("numba" in sys.modules)
"""


KERNELS = Kernels()


@KERNELS.inlined
def twice(value: float) -> float:
    return 2.0 * value


@KERNELS.kernel
def doubled(values: np.ndarray) -> float:
    found: float = twice(float(values[0]))
    return found


def run(*words: str) -> list[str]:
    shown = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, check=True)
    assert shown.stderr == ""
    return shown.stdout.splitlines()


def test_few_blocks_show_the_same_without_the_compiler_to_the_last_bit():
    *plain, is_loaded = run("-m", "tests.services.statistics.plain_tracks")
    assert is_loaded == "False"
    assert numba.__name__ in sys.modules
    assert plain == figures()


@pytest.mark.parametrize(
    ("sizes", "loaded"),
    [
        ([1, lazy_kernels.FEW], ["False", "False"]),
        ([1, lazy_kernels.FEW + 1], ["False", "True"]),
        ([100] * (lazy_kernels.MANY // 100 + 1), ["False"] * (lazy_kernels.MANY // 100) + ["True"]),
    ],
)
def test_compiler_is_loaded_for_many_blocks_at_once_or_in_all(sizes, loaded, tmp_path):
    program = tmp_path / "sums.py"
    program.write_text(SUM.format(sizes=sizes))
    assert run("-c", f"import runpy; runpy.run_path({str(program)!r})") == loaded


QUIET = """
import sys
import warnings
import numpy as np
from services.statistics.lazy_kernels import Kernels

warnings.simplefilter("error")
KERNELS = Kernels()

@KERNELS.kernel
def shares(values):
    return values[0] / values[1], values[2] * values[2], np.log(values[1])

print(*shares(np.array([1.0, 0.0, 1e200])))
print("numba" in sys.modules)
"""
PAIRS = """
import sys
import numpy as np
from services.statistics.lazy_kernels import Kernels

KERNELS = Kernels()

@KERNELS.kernel
def both(pair, factor):
    return factor * (pair[0][0] + pair[1][0])

for size in (200, 201):
    both((np.ones(1), np.ones(size)), 2.0)
    print("numba" in sys.modules)
"""


def test_zero_and_overflow_are_walked_without_a_warning_as_they_are_compiled(tmp_path):
    program = tmp_path / "shares.py"
    program.write_text(QUIET)
    assert run("-c", f"import runpy; runpy.run_path({str(program)!r})") == ["inf inf -inf", "False"]


def test_blocks_of_arrays_within_a_tuple_are_counted(tmp_path):
    program = tmp_path / "pairs.py"
    program.write_text(PAIRS)
    assert run("-c", f"import runpy; runpy.run_path({str(program)!r})") == ["False", "True"]


def test_few_blocks_are_walked_by_the_compiler_that_is_loaded_anyway(monkeypatch):
    kernels = Kernels()

    @kernels.kernel
    def first(values: np.ndarray) -> float:
        return float(values[0])

    monkeypatch.setattr(kernels, "compiled", lambda name: lambda values: f"compiled {name}")
    assert first(np.ones(1)) == "compiled first"


def test_functions_that_call_each_other_are_compiled_together():
    values = np.array([1.5])
    assert doubled(values) == doubled.plain(values) == doubled.compiled(values) == 3.0
    assert isinstance(doubled.compiled, numba.core.registry.CPUDispatcher)
