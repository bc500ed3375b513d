"""A world may have more symbols than two digits name."""

import pytest

from worker.feeds.sample_data.worlds import make_world


@pytest.mark.parametrize(
    ("symbols", "first", "last"), [(3, "W00", "W02"), (100, "W00", "W99"), (300, "W000", "W299")]
)
def test_symbols_of_a_world_ascend_however_many_there_are(symbols, first, last):
    names = make_world("reverting", seed=1, bars=20, symbols=symbols).symbols
    assert (names[0], names[-1], len(names)) == (first, last, symbols)
    assert list(names) == sorted(names)
