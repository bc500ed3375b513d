"""How the house stands: sizes, rooms, imports and functions, as figures.

`uv run python -m tools.house` prints the table. Lines are those of files, imports those of modules, lazy and
type-only ones counted; a function's lines run from its `def` to its end.
"""

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import grimp
import numpy as np

from tools.docs_pages import ROOT, table

ROOMS = ("schemas", "trading_core", "services", "agents", "prompts", "worker")


@dataclass(frozen=True)
class House:
    """The figures of the house.

    Attributes:
        lines, files, test_lines: of Python files of the six rooms, and of the tests.
        roots: modules at the root of a room, without `__init__` and `__main__`, by room.
        longest_chain: modules in the longest chain of imports.
        most_imports: modules of ours that one module imports, and its name.
        function_p99: lines that 99 of 100 functions do not exceed.
        longest_module: lines of the longest file, and its name.
    """

    lines: int
    files: int
    test_lines: int
    roots: dict[str, int]
    longest_chain: int
    most_imports: tuple[int, str]
    function_p99: float
    longest_module: tuple[int, str]


def measure_house() -> House:
    """Read every file and the graph of imports."""
    files = {path: path.read_text("utf-8") for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))}
    tests = [path.read_text("utf-8") for path in sorted((ROOT / "tests").rglob("*.py"))]
    sizes = {str(path.relative_to(ROOT)): text.count("\n") for path, text in files.items()}
    imports = imports_of_modules()
    widest = max(imports, key=lambda name: (len(imports[name]), name))
    longest = max(sizes, key=lambda name: (sizes[name], name))
    functions = [size for text in files.values() for size in function_sizes(text)]
    return House(
        sum(sizes.values()),
        len(sizes),
        sum(text.count("\n") for text in tests),
        {room: len(root_modules(ROOT / room)) for room in ("services", "worker")},
        longest_chain(imports),
        (len(imports[widest]), widest),
        float(np.percentile(functions, 99)),
        (sizes[longest], longest),
    )


def root_modules(room: Path) -> list[str]:
    """Modules that lie at the root of a room."""
    return sorted(path.stem for path in room.glob("*.py") if not path.stem.startswith("__"))


def imports_of_modules() -> dict[str, frozenset[str]]:
    """What each module of the rooms imports of the others."""
    graph = grimp.build_graph(*ROOMS, cache_dir=None)
    return {name: frozenset(graph.find_modules_directly_imported_by(name)) for name in sorted(graph.modules)}


def longest_chain(imports: dict[str, frozenset[str]]) -> int:
    """Modules in the longest chain; RecursionError where imports run in a circle."""

    @cache
    def below(name: str) -> int:
        return 1 + max((below(imported) for imported in imports[name]), default=0)

    return max(below(name) for name in imports)


def function_sizes(text: str) -> Iterator[int]:
    """Lines of every function and method of a file."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield (node.end_lineno or node.lineno) - node.lineno + 1


def house_table(house: House) -> str:
    """The figures as a table."""
    rows = [
        ("production lines / files", f"{house.lines:,} / {house.files}"),
        ("test lines", f"{house.test_lines:,}"),
        *((f"modules at the root of `{room}`", str(count)) for room, count in house.roots.items()),
        ("longest chain of imports", str(house.longest_chain)),
        ("most imports of a module", f"{house.most_imports[0]} (`{house.most_imports[1]}`)"),
        ("lines of a function, p99", f"{house.function_p99:.0f}"),
        ("lines of a module, most", f"{house.longest_module[0]} (`{house.longest_module[1]}`)"),
    ]
    return table(("what", "now"), rows)


if __name__ == "__main__":
    sys.stdout.write(house_table(measure_house()) + "\n")
