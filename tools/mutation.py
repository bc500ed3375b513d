"""Change the kernel in small ways, one at a time, and see whether the tests notice.

`python -m tools.mutation` takes a seeded sample of the mutants of `trading_core/kernel`, runs the kernel's
tests against each in a process of its own, without the compiler, and writes what survived to
`docs/reference/mutation.md`. A survivor is a test that is missing, or a change that changes nothing; the
second kind carries its reason in `tools/mutation_survivors.toml`. A run that was stopped goes on where it
stopped, as long as the kernel is the same; survivors run again when the tests have changed. Delete
`out/mutation.json` to begin anew.
"""

import argparse
import ast
import copy
import hashlib
import importlib
import itertools
import json
import multiprocessing
import os
import random
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, Final

import pytest

from tools.docs_pages import ROOT

KERNEL: Final = ROOT / "trading_core" / "kernel"
MODULES: Final = (
    "boundaries", "closes", "events", "execution", "fills", "limits", "loop", "orders", "portfolio", "sizing",
)  # fmt: skip
TESTS: Final = (
    *(
        f"tests/trading_core/test_kernel_{name}.py"
        for name in ("entries", "exits", "envelope", "costs", "numbers", "state_machine", "boundaries")
    ),
    "tests/trading_core/test_trigger_engine_tick_validation.py",
)
HELPERS: Final = ("tests/trading_core/engine_bench.py", "tests/trading_core/market.py")
SLOW: Final = "not never_reacts and not any_block and not conserved and not balance and not future"
PAGE: Final = ROOT / "docs" / "reference" / "mutation.md"
REASONS: Final = ROOT / "tools" / "mutation_survivors.toml"
RESULTS: Final = ROOT / "out" / "mutation.json"
SECONDS: Final = 60.0  # of one mutant; a loop that never ends is noticed this way
AT_ONCE: Final = 2
BAR: Final = "\\|"  # in a cell of a table

_COMPARED: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
}  # fmt: skip
_COMPUTED: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One change of one function.

    Attributes:
        module: name of the kernel module.
        function: that is changed.
        change: what stood there, what stands there now, and which of the equal ones in the function.
        code: of the changed function.
    """

    module: str
    function: str
    change: str
    code: CodeType

    @property
    def key(self) -> str:
        """What the table of reasons names it by."""
        return f"{self.module}:{self.function}: {self.change}"


def mutants(module: str) -> list[Mutant]:
    """Every mutant of a kernel module, in the order of its source."""
    tree = ast.parse((KERNEL / f"{module}.py").read_text("utf-8"))
    found = []
    for function in tree.body:
        if isinstance(function, ast.FunctionDef):
            seen: Counter[str] = Counter()
            for told, changed in _changes(function):
                seen[told] += 1
                change = told if seen[told] == 1 else f"{told} #{seen[told]}"
                found.append(Mutant(module, function.name, change, _compiled(changed, module)))
    return found


def _changes(function: ast.FunctionDef) -> Iterator[tuple[str, ast.FunctionDef]]:
    """The function with one node changed, for every node that has a change, and the words for it."""
    nodes = [node for statement in function.body for node in ast.walk(statement)]
    for at, node in enumerate(nodes):
        for change in _changes_of(node):
            twin = copy.deepcopy(function)
            target = [part for statement in twin.body for part in ast.walk(statement)][at]
            before = ast.unparse(node)
            after = ast.unparse(change(target))
            if before != after:
                yield f"`{_short(before)}` -> `{_short(after)}`", twin


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 70 else f"{line[:67]}..."


def _changes_of(node: ast.AST) -> list[Callable[[Any], ast.AST]]:
    """Functions that change such a node in place and return what to show."""
    if isinstance(node, ast.Compare):
        return [_compare(k) for k, op in enumerate(node.ops) if type(op) in _COMPARED]
    if isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in _COMPUTED:
        return [_operate]
    if isinstance(node, ast.BoolOp):
        return [_swap_and_or]
    if isinstance(node, ast.UnaryOp):
        return [_drop_sign]
    if isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
        return [_next_constant]
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
        return [_keep_old]
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return [_call_nothing]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("min", "max"):
        return [_swap_min_max]
    return []


def _compare(k: int) -> Callable[[Any], ast.AST]:
    def change(node: Any) -> ast.AST:
        node.ops[k] = _COMPARED[type(node.ops[k])]()
        return node  # type: ignore[no-any-return]

    return change


def _operate(node: Any) -> ast.AST:
    node.op = _COMPUTED[type(node.op)]()
    return node  # type: ignore[no-any-return]


def _swap_and_or(node: Any) -> ast.AST:
    node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    return node  # type: ignore[no-any-return]


def _drop_sign(node: Any) -> ast.AST:
    node.op = ast.UAdd() if isinstance(node.op, ast.USub) else node.op
    if isinstance(node.op, ast.Not):
        node.operand = ast.UnaryOp(ast.Not(), node.operand)
    return node  # type: ignore[no-any-return]


def _next_constant(node: Any) -> ast.AST:
    node.value = not node.value if isinstance(node.value, bool) else node.value + 1
    return node  # type: ignore[no-any-return]


def _keep_old(node: Any) -> ast.AST:
    node.value = copy.deepcopy(node.targets[0])
    node.value.ctx = ast.Load()
    return node  # type: ignore[no-any-return]


def _call_nothing(node: Any) -> ast.AST:
    node.value = ast.Constant(None)
    return node  # type: ignore[no-any-return]


def _swap_min_max(node: Any) -> ast.AST:
    node.func.id = "max" if node.func.id == "min" else "min"
    return node  # type: ignore[no-any-return]


def _compiled(function: ast.FunctionDef, module: str) -> CodeType:
    function.decorator_list = []
    tree = ast.fix_missing_locations(ast.Module([function], []))
    made = compile(tree, f"mutant of {module}", "exec")
    return next(
        part for part in made.co_consts if isinstance(part, CodeType) and part.co_name == function.name
    )


def load_plain_kernel() -> None:
    """Import the engine without the compiler, and let it read records by name as compiled code does."""
    os.environ["NUMBA_DISABLE_JIT"] = "1"
    import numpy as np

    np.seterr(all="ignore")  # the compiled kernel divides as IEEE says, without a warning
    import trading_core.kernel as package
    from trading_core import simulation, trigger_engine
    from trading_core.kernel import loop

    plain = loop.advance
    places = (11, 12, 13, 14, 16)  # state, portfolio, parameters, events, trades

    def advance(*arguments: Any) -> Any:
        given = list(arguments)
        for place in places:
            given[place] = given[place].view(np.recarray)
        return plain(*given)

    for module in (package, simulation, trigger_engine):
        module.advance = advance  # type: ignore[attr-defined]


class Check:
    """Plugin that runs the collected tests once for each mutant, in a child, instead of once for all."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Called by pytest after the collection."""
        every = [mutant for module in MODULES for mutant in mutants(module)]
        chosen = list(every)
        random.Random(self.options.seed).shuffle(chosen)  # a larger sample holds the smaller one
        chosen = chosen[: self.options.sample or None]
        outcome = run(session, chosen, known_results(session))
        order = {mutant.key: at for at, mutant in enumerate(every)}
        chosen.sort(key=lambda mutant: order[mutant.key])
        total = Counter(mutant.module for mutant in every)
        PAGE.write_text(page(chosen, total, outcome, self.options.seed), "utf-8")
        return True


def survives(session: pytest.Session, mutant: Mutant | None) -> None:
    """Body of a child: exits with 0 when the tests pass although the kernel is changed."""
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    if mutant is not None:
        module = importlib.import_module(f"trading_core.kernel.{mutant.module}")
        function: FunctionType = getattr(module, mutant.function)
        function.__code__ = mutant.code
    for item, following in itertools.pairwise([*session.items, None]):
        if item is not None:
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            os._exit(1)
    os._exit(0)


def run(session: pytest.Session, sample: list[Mutant], known: dict[str, str]) -> dict[str, str]:
    """Outcome by key: killed, timeout or survived; each is saved as it comes."""
    outcome = dict(known)
    waiting = [mutant for mutant in sample if mutant.key not in outcome]
    running: list[tuple[Mutant, Any, float]] = []
    while waiting or running:
        while waiting and len(running) < AT_ONCE:
            mutant = waiting.pop(0)
            running.append((mutant, _child(session, mutant), time.monotonic()))
        for mutant, process, started in list(running):
            process.join(0.02)
            late = time.monotonic() - started > SECONDS
            if process.is_alive() and not late:
                continue
            process.kill()
            process.join()
            outcome[mutant.key] = "timeout" if late else "survived" if process.exitcode == 0 else "killed"
            running.remove((mutant, process, started))
            RESULTS.write_text(json.dumps({**digests(), "outcome": outcome}), "utf-8")
            print(f"{len(outcome):4} {outcome[mutant.key]:8} {mutant.key}", flush=True)
    return outcome


def _child(session: pytest.Session, mutant: Mutant | None) -> Any:
    process = multiprocessing.get_context("fork").Process(target=survives, args=(session, mutant))
    process.start()
    return process


def known_results(session: pytest.Session) -> dict[str, str]:
    """Results of an earlier run on the same kernel; when the tests have changed, survivors run again.

    Raises:
        UsageError: the tests fail on the kernel as it is, so that nothing could be learned from mutants.
    """
    RESULTS.parent.mkdir(exist_ok=True)
    unchanged = _child(session, None)
    unchanged.join()
    if unchanged.exitcode != 0:
        raise pytest.UsageError("the tests fail on the kernel as it is: run pytest first")
    saved: dict[str, Any] = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {"kernel": ""}
    now = digests()
    if saved["kernel"] != now["kernel"]:
        return {}
    again = saved["tests"] != now["tests"]
    return {key: how for key, how in saved["outcome"].items() if not (again and how == "survived")}


def digests() -> dict[str, str]:
    """Of the kernel, and of the tests with what they import."""
    kernel = [KERNEL / f"{name}.py" for name in MODULES]
    tests = [ROOT / name for name in (*TESTS, *HELPERS)]
    return {name: _digest(files) for name, files in (("kernel", kernel), ("tests", tests))}


def _digest(files: list[Path]) -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def page(sample: list[Mutant], total: Counter[str], outcome: dict[str, str], seed: int) -> str:
    """The page, from the results alone."""
    reasons: dict[str, str] = tomllib.loads(REASONS.read_text("utf-8")) if REASONS.exists() else {}
    done = [mutant for mutant in sample if mutant.key in outcome]
    left = [mutant for mutant in done if outcome[mutant.key] == "survived"]
    lines = [
        "# Mutation check", "",
        "Written by `make mutation`, which changes the kernel in small ways, one at a time, and runs the",
        "kernel's tests against each change: a comparison made strict, loose or turned around, another",
        "arithmetic or logical operator, the next constant, a sign or a `not` dropped, an assignment or a",
        "call left out. A survivor is a change that no test of the subset noticed. The slower properties and",
        "the comparisons with other engines are not part of the subset.", "",
        f"{sum(total.values()):,} mutants exist; a sample of {len(done):,} (seed {seed}) was run: "
        f"{len(done) - len(left):,} were noticed ({_share(len(done) - len(left), len(done))}), "
        f"{sum(outcome[m.key] == 'timeout' for m in done)} of them because the tests never ended, and "
        f"{len(left):,} survived, of which {sum(m.key in reasons for m in left):,} change nothing that "
        "could be seen.", "",
        "| module | mutants | run | noticed |", "| --- | ---: | ---: | ---: |",
    ]  # fmt: skip
    for module in MODULES:
        ours = [mutant for mutant in done if mutant.module == module]
        noticed = sum(outcome[mutant.key] != "survived" for mutant in ours)
        lines.append(f"| {module} | {total[module]} | {len(ours)} | {_share(noticed, len(ours))} |")
    lines += ["", "## Survivors", "", "| change | why it stays |", "| --- | --- |"]
    for mutant in left:
        why = reasons.get(mutant.key, "a test is missing")
        lines.append(f"| {mutant.key.replace('|', BAR)} | {why} |")
    return "\n".join(lines) + "\n"


def _share(part: int, whole: int) -> str:
    return "-" if whole == 0 else f"{part / whole:.1%}"


def main() -> None:
    """Run the sample and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=300, help="mutants to run; 0: every one")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    load_plain_kernel()
    raise SystemExit(
        pytest.main(
            [*TESTS, "-x", "-s", "-k", SLOW, "-p", "no:terminal", "-p", "no:cacheprovider", "-W", "ignore"],
            plugins=[Check(options)],
        )
    )


if __name__ == "__main__":
    main()
