"""The house does not grow crooked: figures of its rooms and imports, each with room of two percent."""

import pytest

from tools.house import function_sizes, house_table, longest_chain, measure_house

MOST = {"longest_chain": 20, "most_imports": 25, "function_p99": 41.0, "longest_module": 450}
ROOTS = {"services": 6, "worker": 4}


def test_figures_of_the_house_stay_within_two_percent_of_what_was_reached():
    house = measure_house()
    assert house.roots == ROOTS
    found = {
        "longest_chain": house.longest_chain,
        "most_imports": house.most_imports[0],
        "function_p99": house.function_p99,
        "longest_module": house.longest_module[0],
    }
    assert {name: figure for name, figure in found.items() if figure > 1.02 * MOST[name]} == {}
    assert f"| {house.lines:,} / {house.files} |" in house_table(house)


def test_longest_chain_counts_modules_and_refuses_a_circle():
    chain = {"a": frozenset({"b", "d"}), "b": frozenset({"c"}), "c": frozenset[str](), "d": frozenset[str]()}
    assert longest_chain(chain) == 3
    with pytest.raises(RecursionError):
        longest_chain({"a": frozenset({"b"}), "b": frozenset({"a"})})


def test_function_sizes_are_those_of_functions_and_methods():
    text = "def a():\n    return 1\n\n\nclass B:\n    async def b(self):\n        x = 1\n        return x\n"
    assert sorted(function_sizes(text)) == [2, 3]
