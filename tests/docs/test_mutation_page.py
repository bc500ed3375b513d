"""The page of the mutation check and the reasons of its survivors say the same, about mutants that exist."""

from collections import Counter

import pytest

from tools.mutants import Mutant, every_mutant
from tools.mutation import BAR, MISSING, NOTICED, PAGE, SURVIVED, page, reasons


@pytest.fixture(scope="module")
def every() -> list[Mutant]:
    return every_mutant()


def _survivors(text: str) -> dict[str, str]:
    """Reasons by key, from the table of a page."""
    rows = text.split("| change | why it stays |\n| --- | --- |\n")[1].splitlines()
    cells = [row.removeprefix("| ").removesuffix(" |").rsplit(" | ", 1) for row in rows]
    return {change.replace(BAR, "|"): why for change, why in cells}


def test_mutation_page_has_every_survivor_with_its_reason_and_no_reason_without_a_survivor():
    assert _survivors(PAGE.read_text("utf-8")) == reasons()


def test_mutation_page_reasons_are_of_mutants_that_exist(every):
    assert set(reasons()) <= {mutant.key for mutant in every}


def test_mutation_page_tells_mutants_apart(every):
    assert len({mutant.key for mutant in every}) == len(every) > 1_000


def test_mutation_page_of_a_survivor_without_a_reason_says_that_a_test_is_missing(every):
    first, second = every[:2]
    total = Counter(mutant.module for mutant in every)
    text = page([first, second], total, {first.key: NOTICED, second.key: SURVIVED}, seed=1)
    assert _survivors(text) == {second.key: MISSING}
    assert "a sample of 2 (seed 1) was run: 1 were noticed (50.0%)" in text
