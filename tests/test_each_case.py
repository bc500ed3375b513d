"""A table that one test walks: every case is run, and each that fails is named."""

import pytest

from tests.each_case import check_each


def test_table_names_each_case_that_fails_and_runs_all_of_them():
    seen = []

    @check_each("left", [1, pytest.param(2, id="two")])
    @check_each(("right", "sum_"), [(1, 2), (3, 4)], ids=["one more", "three more"])
    def walked(left: int, right: int, sum_: int) -> None:
        seen.append((left, right))
        assert left + right == sum_

    with pytest.raises(ExceptionGroup, match="1 of 2 cases") as caught:
        walked()
    assert seen == [(1, 1), (1, 3), (2, 1), (2, 3)]
    assert caught.value.exceptions[0].__notes__ == ["case: 'two'"]
    assert [error.__notes__ for error in caught.value.exceptions[0].exceptions] == [
        ["case: 'one more'"], ["case: 'three more'"],
    ]  # fmt: skip


def test_table_without_a_case_is_refused():
    with pytest.raises(AssertionError, match="checks nothing"):
        check_each("case", [])
