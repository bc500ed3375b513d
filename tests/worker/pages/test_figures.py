"""How figures are shown: none longer than anybody reads, and one bar is no bars."""

import pytest

from services.model_calls.quoting import count_noun
from worker.pages.figures import number, percent, r_multiple


@pytest.mark.parametrize(
    ("figure", "shown"),
    [
        (percent(1e300), "1.0e+302 %"),
        (percent(-1e13), "-1.0e+15 %"),
        (percent(9e12), "900,000,000,000,000.0 %"),
        (percent(0.123), "12.3 %"),
        (percent(-0.0004), "0.0 %"),
        (number(-0.004), "0.00"),
        (r_multiple(-0.004), "+0.00 R"),
        (number(-1e300), "-1.00e+300"),
        (number(1234.5), "1,234.50"),
        (r_multiple(1e300), "+1.00e+300 R"),
        (r_multiple(0.125), "+0.12 R"),
    ],
)
def test_figure_of_more_digits_than_anybody_counts_is_shown_in_powers_of_ten(figure: str, shown: str) -> None:
    assert figure == shown


@pytest.mark.parametrize(
    ("count", "shown"), [(0, "0 bars"), (1, "1 bar"), (2, "2 bars"), (2_000, "2,000 bars")]
)
def test_one_of_a_thing_is_told_without_the_plural(count: int, shown: str) -> None:
    assert count_noun(count, "bar") == shown
