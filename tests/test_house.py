"""The house does not grow crooked: figures of its rooms and imports, each with room of two percent.

Lines are no figure of this kind: they are printed, and weighed by whoever reads them.
"""

import ast
from dataclasses import replace

import pytest

from tools.house import (
    functions_of,
    house_table,
    kinds_of_wide,
    lazy_imports,
    lines_of,
    longest_chain,
    measure_house,
    parameters_of,
)
from tools.way import Way, measure_way

MOST = {
    "longest_chain": 24,  # the console stands over what the commands stand over, inside of a process too
    "most_imports": 25,
    "function_p99": 41.0,
    "longest_module": 450,
    "lazy_imports": 351,
    "patterns": 91,
    "many_parameters": 201,
    "most_parameters": 21,
}
ROOTS = {"services": 6, "worker": 4}
WAY = (58, 34, 1)  # modules, packages and steps to a caller's package from file to fill
WIDE = {  # functions of more than eight parameters, neither the engine's nor commands: none joins them
    "agents/language_models/wire_model.py: __init__",
    "services/guard/desk.py: open",
}


@pytest.fixture(scope="module")
def house():
    return measure_house()


def test_figures_of_the_house_stay_within_two_percent_of_what_was_reached(house):
    assert house.roots == ROOTS
    figures = {name: getattr(house, name) for name in MOST}
    found = {name: figure[0] if isinstance(figure, tuple) else figure for name, figure in figures.items()}
    assert {name: figure for name, figure in found.items() if figure > 1.02 * MOST[name]} == {}
    assert f"| {house.lines:,} / {house.files} |" in house_table(house)


def test_functions_of_more_than_eight_parameters_are_the_engine_s_and_commands(house):
    assert set(kinds_of_wide(house)[2]) <= WIDE


def test_way_from_file_to_fill_grows_no_longer():
    way = measure_way()
    modules = [step.module for step in way.steps]
    assert modules[0] == "worker.feeds.selected_bars"
    assert {"trading_core.trigger_engine", "agents.judge_agent_client"} <= set(modules)
    found = [most for most, reached in zip(WAY, way.counts, strict=True) if reached > most]
    assert found == [], way.counts


def test_way_counts_a_module_once_and_the_step_into_a_package_that_called_before():
    way = Way()
    way.follow(["worker.runs.backtest", "services.loop.one", "services.loop.two", "agents.judge"])
    way.follow(["worker.runs.backtest", "services.loop.one", "agents.judge", "services.loop.three"])
    assert way.counts == (5, 3, 1)
    assert [step.module for step in way.steps if step.is_back] == ["services.loop.three"]


def test_longest_chain_counts_modules_and_refuses_a_circle():
    chain = {"a": frozenset({"b", "d"}), "b": frozenset({"c"}), "c": frozenset[str](), "d": frozenset[str]()}
    assert longest_chain(chain) == 3
    with pytest.raises(RecursionError):
        longest_chain({"a": frozenset({"b"}), "b": frozenset({"a"})})


def test_figures_of_functions_count_methods_parameters_and_imports_inside():
    text = """
def a(x, /, y, *rest, z=1, **more):
    import json
    def inner():
        import ast
    return json


class B:
    async def b(self):
        x = 1
        return x
"""
    found = {node.name: node for node in functions_of(ast.parse(text))}
    assert {name: lines_of(node) for name, node in found.items()} == {"a": 5, "inner": 2, "b": 3}
    assert {name: parameters_of(node) for name, node in found.items()} == {"a": 5, "inner": 0, "b": 0}
    assert {name: len(lazy_imports(node)) for name, node in found.items()} == {"a": 1, "inner": 1, "b": 0}


def test_house_table_with_a_revision_shows_both_figures(house):
    before = replace(house, lines=house.lines + 1_000)
    row = f"| {before.lines:,} / {house.files} | {house.lines:,} / {house.files} |"
    assert row in house_table(house, before)
