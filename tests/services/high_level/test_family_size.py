"""What a cluster is laid out with: its account, its playbook, and how many are tested together."""

import numpy as np
import pytest

from schemas.settings import GateSettings
from services.high_level.clusters import TradeTable, build_clusters
from services.statistics.blocks import LOSING
from tests.services.statistics.laid_out import MONDAY, WEEK_NS, t3

GATE = GateSettings()
NEVER_NS = MONDAY + 400 * WEEK_NS


def table(moved_others):
    """Two playbooks of one cell, 80 weeks; the first falls at half, the second if `moved_others`."""
    draw = np.random.default_rng(4)
    moved = np.where(np.arange(80) < 40, 0.5, -0.7)[:, None]
    own, other = t3(draw, (80, 5)) + moved, t3(draw, (80, 15)) + moved * moved_others
    r = np.concatenate((own.ravel(), other.ravel()))
    weeks = np.concatenate((np.repeat(np.arange(80), 5), np.repeat(np.arange(80), 15)))
    entry = MONDAY + weeks * WEEK_NS + np.arange(len(r))
    zeros = np.zeros(len(r), dtype=np.int64)
    books = np.repeat([0, 1], (400, 1200))
    keys = ("a", "b"), ("up/mid",), ("1h",), (3_600,), (0.0, 0.0)
    return TradeTable(entry, entry + 1, r, books, zeros, zeros, *keys)


@pytest.mark.parametrize(("moved_others", "together"), [(False, 1), (True, 16)])
def test_playbook_and_the_rest_of_the_account_judge_a_cell(moved_others, together):
    """Red without the account: alone, a mean that moved is held for a long shock."""
    first = build_clusters(table(moved_others), GATE)[0]
    assert first.track.at(NEVER_NS).together == together


def test_large_families_give_up_one_bet_of_several_rows_later():
    few, many = (
        build_clusters(table(False), GATE, declared=[f"x|{k}" for k in range(more)])[0].track
        for more in (10, 60)
    )
    assert (few.bounds.registered, many.bounds.registered) == (14, 64)
    assert many.stakes(LOSING, 20)[0] > few.stakes(LOSING, 20)[0]
    assert many.stakes(LOSING, 20)[1] > few.stakes(LOSING, 20)[1]
