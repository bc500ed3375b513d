import pytest

from schemas.errors import InvariantViolation
from schemas.settings import GateSettings
from schemas.slow_reflection import GridTrial
from services.high_level.grid import best_candidate, run_grid
from services.statistics.blocks import Trades
from tests.services.high_level.builders import DAY_NS, START, playbook

END = START + 100 * DAY_NS


def trial(value, mean_r, n=30, parameter="stretch"):
    return GridTrial(
        playbook_id="pullback", parameter=parameter, value=value, n=n, mean_r=mean_r, e_value=1.0
    )


class Evaluator:
    def __init__(self, rows):
        self.rows = rows

    def evaluate(self, definition, parameter, value, start_ns, end_ns):
        return Trades.of(self.rows)


def run(rows):
    return run_grid(playbook(), Evaluator(rows), GateSettings(), 0.0, "1h", START, END)


def test_grid_tries_every_value_of_every_parameter_once():
    trials = run([(START, START, 1.0)] * 3)
    assert [(item.parameter, item.value) for item in trials] == [
        ("exit_below", 20.0), ("exit_below", 50.0), ("stretch", 0.9), ("stretch", 1.0), ("stretch", 1.1),
    ]  # fmt: skip
    assert {(item.n, item.mean_r) for item in trials} == {(3, 1.0)}
    assert len({item.hypothesis for item in trials}) == 5


@pytest.mark.parametrize(("r", "leaning"), [(-0.5, "losing"), (0.5, "gaining"), (0.0, None)])
def test_grid_value_names_the_claim_of_its_e_value(r, leaning):
    rows = [(START + k * DAY_NS, START + k * DAY_NS, r) for k in range(60)]
    (found,) = {(item.leaning, item.payload().get("leaning", "left out")) for item in run(rows)}
    assert found == (leaning, leaning or "left out")


def test_grid_value_without_trades_has_no_mean():
    assert {(item.n, item.mean_r, item.e_value) for item in run([])} == {(0, None, None)}


def test_grid_trade_after_the_window_is_a_violation():
    with pytest.raises(InvariantViolation, match="after"):
        run([(END + 1, START, 1.0)])


@pytest.mark.parametrize(
    ("trials", "value"),
    [
        ([trial(1.0, -0.2), trial(1.1, -0.1)], 1.1),
        ([trial(1.0, -0.2), trial(1.1, -0.11)], None),
        ([trial(1.0, -0.2), trial(1.1, 0.5, n=19)], None),
        ([trial(1.0, -0.2), trial(0.9, 0.3), trial(1.1, 0.3)], 0.9),
        ([trial(1.0, None, n=0), trial(1.1, 0.5)], None),
        ([trial(1.0, 0.5), trial(1.1, None, n=0)], None),
    ],
)
def test_best_candidate_is_materially_better_on_enough_trades(trials, value):
    winner = best_candidate(playbook(), trials, 20)
    assert (winner.value if winner else None) == value
