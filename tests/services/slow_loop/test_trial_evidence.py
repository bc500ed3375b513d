"""What a trial has shown is read from its settled trades alone, and is that of all of them."""

import numpy as np
import pytest

from schemas.settings import GateSettings
from services.high_level.trade_bounds import bounds_of, trades_of
from services.slow_loop.trial_evidence import trial_evidence, trial_track
from services.statistics.track import Track
from tests.services.high_level.builders import DAY_NS, START, episode, playbook

BOOK, GATE = playbook("pullback"), GateSettings(block="week")


@pytest.mark.parametrize("seed", range(4))
def test_evidence_of_settled_trades_is_that_of_all_of_them_at_every_look(seed):
    draw = np.random.default_rng(seed)
    entries = np.sort(draw.integers(0, 400, 150))
    exits = entries + draw.integers(0, 40, 150)
    trades = [
        episode(
            BOOK,
            number=k,
            r=float(r),
            entry_label=START + int(a) * DAY_NS,
            exit_label=START + int(b) * DAY_NS,
        )
        for k, (a, b, r) in enumerate(zip(entries, exits, draw.normal(0.3, 1.0, 150), strict=True))
    ]
    built = trial_track.cache_info().misses
    for day in range(0, 460, 3):
        at = START + day * DAY_NS
        known = [trade for trade in trades if trade.exit_label <= at]
        opened = min((t.entry_label for t in trades if t.entry_label <= at < t.exit_label), default=None)
        found = trial_evidence(known, GATE, at, BOOK, opened)
        if not known:
            assert (found["n"], found["blocks"], found["e_value"]) == (0, 0, None)
            continue
        whole = Track(trades_of(known), "week", GATE.reference_r, bounds_of(BOOK, GATE), opened).at(at)
        assert found == {
            "n": whole.n,
            "blocks": whole.blocks,
            "mean_r": whole.mean_r,
            "mean_raw_r": whole.mean_raw,
            "reference_r": whole.reference,
            "e_value": whole.proof_of("gaining"),
            "e_value_below": whole.proof_of("losing"),
        }
    assert whole.blocks > 40
    assert trial_track.cache_info().misses - built <= whole.blocks + 1  # one a block, none a trade
