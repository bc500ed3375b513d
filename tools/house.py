"""How the house stands: sizes, rooms, imports and functions, as figures.

`uv run python -m tools.house` prints the table, `--since REV` what changed since a revision beside it. Lines
are those of files, imports those of modules, lazy and type-only ones counted; a function's lines run from its
`def` to its end, its parameters are those that a caller may give. The functions of more than eight parameters
are listed: those of the engine, whose compiled functions take no records, and commands, whose parameters are
the arguments of a command line. No other may be one.
"""

import ast
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from grimp import build_graph

from tools.docs_pages import ROOT, table
from tools.way import ROOMS, measure_way

LIBRARY = "thinktwice"
DATA = frozenset({".toml", ".md", ".html", ".css", ".js", ".json", ".yaml"})  # text that is program
MANY_PARAMETERS = 5
MOST_PARAMETERS = 8
ENGINE, COMMANDS = "trading_core/", "worker/cli/"
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class House:
    """The figures of the house.

    Attributes:
        lines, files, test_lines: of Python files of the six rooms, and of the tests.
        library_lines: of Python files of the library's package.
        data_lines: of rules, prompts, templates and tables in files that are not Python.
        roots: modules at the root of a room, without `__init__` and `__main__`, by room.
        longest_chain: modules in the longest chain of imports.
        most_imports: modules of ours that one module imports, and its name.
        lazy_imports: imports inside functions.
        patterns: regular expressions that are compiled by name.
        function_p99: lines that 99 of 100 functions do not exceed.
        many_parameters: functions that take more than five.
        most_parameters: of one function, and its name.
        wide: parameters of each function that takes more than eight, by its name.
        longest_module: lines of the longest file, and its name.
        way: modules, packages and steps back from file to fill, see `tools.way`;
            None of a revision, whose code is not run.
    """

    lines: int
    files: int
    test_lines: int
    library_lines: int
    data_lines: int
    roots: dict[str, int]
    longest_chain: int
    most_imports: tuple[int, str]
    lazy_imports: int
    patterns: int
    function_p99: float
    many_parameters: int
    most_parameters: tuple[int, str]
    wide: dict[str, int]
    longest_module: tuple[int, str]
    way: tuple[int, int, int] | None = None


def measure_house(root: Path = ROOT) -> House:
    """Read every file and the graph of imports."""
    files = {path: path.read_text("utf-8") for room in ROOMS for path in sorted((root / room).rglob("*.py"))}
    sizes = {str(path.relative_to(root)): text.count("\n") for path, text in files.items()}
    trees = {name: ast.parse(text) for name, text in zip(sizes, files.values(), strict=True)}
    imports = imports_of_modules(root)
    functions = [
        (node, f"{name}: {node.name}") for name, tree in trees.items() for node in functions_of(tree)
    ]
    parameters = {name: parameters_of(node) for node, name in functions}
    return House(
        sum(sizes.values()),
        len(sizes),
        _lines(root / "tests", {".py"}),
        _lines(root / LIBRARY, {".py"}),
        sum(_lines(root / room, DATA) for room in (*ROOMS, LIBRARY)),
        {room: len(root_modules(root / room)) for room in ("services", "worker")},
        longest_chain(imports),
        _most({name: len(imported) for name, imported in imports.items()}),
        sum(len(lazy_imports(node)) for node, _ in functions),
        sum(text.count("re.compile(") for text in files.values()),
        float(np.percentile([lines_of(node) for node, _ in functions], 99)),
        sum(count > MANY_PARAMETERS for count in parameters.values()),
        _most(parameters),
        {name: count for name, count in sorted(parameters.items()) if count > MOST_PARAMETERS},
        _most(sizes),
    )


def _lines(folder: Path, endings: frozenset[str] | set[str]) -> int:
    paths = (path for path in folder.rglob("*") if path.suffix in endings)
    return sum(path.read_text("utf-8").count("\n") for path in paths)


def _most(counts: Mapping[str, int]) -> tuple[int, str]:
    return max((count, name) for name, count in counts.items())


def root_modules(room: Path) -> list[str]:
    """Modules that lie at the root of a room."""
    return sorted(path.stem for path in room.glob("*.py") if not path.stem.startswith("__"))


def imports_of_modules(root: Path = ROOT) -> dict[str, frozenset[str]]:
    """What each module of the rooms imports of the others."""
    sys.path.insert(0, str(root))  # where the packages are looked for
    try:
        graph = build_graph(*ROOMS, cache_dir=None)
    finally:
        sys.path.remove(str(root))
    return {name: frozenset(graph.find_modules_directly_imported_by(name)) for name in sorted(graph.modules)}


def longest_chain(imports: dict[str, frozenset[str]]) -> int:
    """Modules in the longest chain; RecursionError where imports run in a circle."""

    @cache
    def below(name: str) -> int:
        return 1 + max((below(imported) for imported in imports[name]), default=0)

    return max(below(name) for name in imports)


def functions_of(tree: ast.AST) -> Iterator[Function]:
    """Every function and method of a file."""
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def lines_of(function: Function) -> int:
    """Lines from `def` to the end."""
    return (function.end_lineno or function.lineno) - function.lineno + 1


def parameters_of(function: Function) -> int:
    """Parameters that a caller may give, `self` and `cls` left out."""
    given = function.args
    named = [*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]
    return sum(argument.arg not in ("self", "cls") for argument in named)


def lazy_imports(function: Function) -> list[ast.Import | ast.ImportFrom]:
    """Imports that stand in a function itself, not in one inside it."""
    inner = {
        id(node) for within in functions_of(function) if within is not function for node in ast.walk(within)
    }
    return [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom) and id(node) not in inner
    ]


def measure_revision(revision: str) -> House:
    """The house as it stood at a revision.

    Raises:
        subprocess.CalledProcessError: there is no such revision.
    """
    packed = subprocess.run(
        ("git", "archive", "--format=tar", revision), cwd=ROOT, capture_output=True, check=True
    )
    with TemporaryDirectory() as folder:
        subprocess.run(("tar", "-x", "-C", folder), input=packed.stdout, check=True)
        return measure_house(Path(folder))


def house_rows(house: House) -> dict[str, str]:
    """What is counted, with its figure in words."""
    return {
        "lines of the six rooms / files": f"{house.lines:,} / {house.files}",
        "lines of the library": f"{house.library_lines:,}",
        "lines of data that is program": f"{house.data_lines:,}",
        "test lines": f"{house.test_lines:,}",
        **{f"modules at the root of `{room}`": str(count) for room, count in house.roots.items()},
        "longest chain of imports": str(house.longest_chain),
        "most imports of a module": f"{house.most_imports[0]} (`{house.most_imports[1]}`)",
        "imports inside functions": str(house.lazy_imports),
        "regular expressions compiled": str(house.patterns),
        "lines of a function, p99": f"{house.function_p99:.0f}",
        "modules, packages, steps back from file to fill": _join(house.way or ("not run",)),
        "functions of more than 5 parameters": str(house.many_parameters),
        "functions of more than 8: engine / commands / others": _join(map(len, kinds_of_wide(house))),
        "parameters of a function, most": f"{house.most_parameters[0]} (`{house.most_parameters[1]}`)",
        "lines of a module, most": f"{house.longest_module[0]} (`{house.longest_module[1]}`)",
    }


def kinds_of_wide(house: House) -> tuple[list[str], list[str], list[str]]:
    """Functions of more than eight parameters: of the engine, of the command line, and all others."""
    engine = [name for name in house.wide if name.startswith(ENGINE)]
    commands = [name for name in house.wide if name.startswith(COMMANDS)]
    return engine, commands, [name for name in house.wide if not name.startswith((ENGINE, COMMANDS))]


def _join(figures: Iterable[object]) -> str:
    return " / ".join(map(str, figures))


def house_table(house: House, before: House | None = None) -> str:
    """The figures as a table; those of `before` beside them."""
    rows = house_rows(house)
    if before is None:
        return table(("what", "now"), list(rows.items()))
    earlier = house_rows(before)
    return table(("what", "before", "now"), [(name, earlier[name], value) for name, value in rows.items()])


def main() -> None:
    """Print the table."""
    parser = ArgumentParser(prog="python -m tools.house", description="How the house stands, as figures.")
    parser.add_argument("--since", metavar="REV", help="a revision of git to compare with")
    since = parser.parse_args().since
    try:
        before = None if since is None else measure_revision(since)
    except subprocess.CalledProcessError as error:
        parser.error(f"--since {since!r}: {error.stderr.decode(errors='replace').strip()}")
    house = replace(measure_house(), way=measure_way().counts)
    wide = [(name, str(house.wide[name])) for kind in kinds_of_wide(house) for name in kind]
    listed = table(("functions of more than 8 parameters", "parameters"), wide)
    sys.stdout.write(f"{house_table(house, before)}\n\n{listed}\n")


if __name__ == "__main__":
    main()
