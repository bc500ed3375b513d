"""Names of functions and loop variables, in every source: verbs, and what a variable holds."""

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache

import pytest

from tools.docs_pages import ROOT
from tools.way import ROOMS

OURS = (*ROOMS, "thinktwice", "tools")
NO_PARTICIPLES = frozenset({"bed", "embed", "exceed", "feed", "need", "proceed", "seed", "shed", "speed"})
IRREGULAR = frozenset(
    {"begun", "built", "drawn", "found", "given", "gone", "held", "heard", "kept", "known", "left", "lost"}
    | {"made", "met", "said", "seen", "sent", "shown", "stood", "taken", "told", "written"}
)
# Behind a participle these name nothing, as in `left_out` or `kept_beside`; `named_time` has a noun.
PARTICLES = frozenset(
    {"after", "apart", "as", "at", "away", "back", "before", "beside", "by", "down", "for", "from", "in"}
    | {"into", "of", "off", "on", "out", "over", "since", "there", "through", "to", "together", "under"}
    | {"until", "up", "with"}
)
# Names that say nothing of what they hold.
VAGUE, FEW = frozenset({"told", "said", "asked", "beside", "behind"}), 30
# Decorators that read as adjectives, and a public name.
KEPT = frozenset({"compiled", "inlined"})
PUBLIC = frozenset({"BacktestResult.contained", "Guard.allowed"})


@cache
def trees(*rooms: str) -> list[tuple[str, ast.Module]]:
    paths = [path for room in rooms for path in sorted((ROOT / room).rglob("*.py"))]
    return [(str(path.relative_to(ROOT)), ast.parse(path.read_text("utf-8"))) for path in paths]


def is_participle(name: str) -> bool:
    """Whether a name is a participle by itself."""
    first, *rest = name.strip("_").split("_")
    regular = first.endswith("ed") and first not in NO_PARTICIPLES
    return (regular or first in IRREGULAR) and (not rest or rest[0] in PARTICLES)


def functions(tree: ast.AST, owner: str = "") -> Iterator[str]:
    """Names of functions and methods, with those of their classes; attributes by another name left out."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            marks = {ast.unparse(mark).split(".")[-1] for mark in node.decorator_list}
            if not marks & {"property", "cached_property", "setter"}:
                yield f"{owner}{node.name}"
            yield from functions(node)
        else:
            yield from functions(node, f"{node.name}." if isinstance(node, ast.ClassDef) else owner)


def loop_variables(tree: ast.AST) -> Iterator[ast.Name]:
    for node in ast.walk(tree):
        if isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
            yield from (part for part in ast.walk(node.target) if isinstance(part, ast.Name))


@pytest.mark.parametrize("name", ["told", "_kept", "left_out", "shown"])
def test_participle_alone_is_found(name):
    assert is_participle(name)


@pytest.mark.parametrize("name", ["seed", "named_time", "tell", "read_forms", "need_of"])
def test_verb_or_noun_is_no_participle(name):
    assert not is_participle(name)


def test_functions_are_named_by_verbs_and_not_by_what_became_of_something():
    found = [
        f"{path}: {name}"
        for path, tree in trees(*OURS)
        for name in functions(tree)
        if is_participle(name.split(".")[-1]) and name not in PUBLIC and name.split(".")[-1] not in KEPT
    ]
    assert found == []


def test_loop_variables_are_named_for_what_they_hold():
    found = [
        f"{path}:{variable.lineno}"
        for path, tree in trees(*OURS, "tests", "benchmarks")
        for variable in loop_variables(tree)
        if variable.id == "one"
    ]
    assert found == []


def test_variables_are_named_for_what_they_hold():
    names = (
        getattr(node, "id", None) or getattr(node, "arg", None) or getattr(node, "attr", None)
        for _, tree in trees(*OURS, "tests", "benchmarks")
        for node in ast.walk(tree)
    )
    found = Counter(name for name in names if name in VAGUE)
    assert all(count < FEW for count in found.values()), found
