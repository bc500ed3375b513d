"""Small changes of the kernel's functions, one at a time, with the words that name each.

A comparison is made strict, loose or turned around; an operator, a constant, a sign, a `not`, `min` or `max`
becomes another; an assignment or a call is left out. `tools.mutation` runs the tests against each.
"""

import ast
import copy
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CodeType
from typing import Any, Final

from tools.docs_pages import ROOT

KERNEL: Final = ROOT / "trading_core" / "kernel"
MODULES: Final = (
    "boundaries", "closes", "events", "execution", "fills", "limits", "loop", "orders", "portfolio", "sizing",
)  # fmt: skip

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


def every_mutant() -> list[Mutant]:
    """Of all modules, in the order of their source."""
    return [mutant for module in MODULES for mutant in mutants(module)]


def mutants(module: str) -> list[Mutant]:
    """Every mutant of a kernel module, in the order of its source."""
    tree = ast.parse((KERNEL / f"{module}.py").read_text("utf-8"))
    found = []
    for function in tree.body:
        if isinstance(function, ast.FunctionDef):
            seen: Counter[str] = Counter()
            for shown, changed in _changes(function):
                seen[shown] += 1
                change = shown if seen[shown] == 1 else f"{shown} #{seen[shown]}"
                found.append(Mutant(module, function.name, change, _compile(changed, module)))
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


def _compile(function: ast.FunctionDef, module: str) -> CodeType:
    function.decorator_list = []
    tree = ast.fix_missing_locations(ast.Module([function], []))
    made = compile(tree, f"mutant of {module}", "exec")
    return next(
        part for part in made.co_consts if isinstance(part, CodeType) and part.co_name == function.name
    )
