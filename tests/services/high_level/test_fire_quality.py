from services.high_level.drift import DriftInputs
from services.high_level.fire_quality import fire_quality, fire_texts, rule_name

BEFORE = {"armed": 10, "activated": 8, "expired": 1, "r": (1.0, 0.5, -1.0, 0.5, 1.0)}


def rows(**pairs):
    return fire_quality(DriftInputs.model_validate({"fires": pairs}).fires)


def test_fire_quality_is_kept_per_entry_rule_with_shares_and_mean_r_of_its_own_trades():
    now = {"armed": 4, "activated": 1, "expired": 3, "r": (-1.0, 0.5)}
    pairs = {rule_name("break_out", way): {"now": now, "before": BEFORE} for way in ("short", "long")}
    first, second = rows(**pairs)
    assert [(row.playbook_id, row.direction) for row in (first, second)] == [
        ("break_out", "long"),
        ("break_out", "short"),
    ]
    assert (first.now.activation_share, first.now.expiry_share) == (0.25, 0.75)
    assert (first.now.trades, first.now.mean_r) == (2, -0.25)
    assert (first.before.trades, first.before.mean_r) == (5, 0.4)


def test_fire_quality_without_fires_or_trades_has_no_share_and_no_mean():
    (row,) = rows(**{"a|long": {"now": {}, "before": BEFORE}})
    assert (row.now.armed, row.now.activation_share, row.now.expiry_share, row.now.mean_r) == (
        0,
        None,
        None,
        None,
    )


def test_fire_texts_name_what_moved_on_five_in_both_windows():
    moved = {"armed": 10, "activated": 2, "expired": 2, "r": (-1.0,) * 5}
    few = {"armed": 4, "activated": 0, "expired": 4, "r": (-1.0,) * 4}
    found = rows(**{"a|long": {"now": moved, "before": BEFORE}, "b|long": {"now": few, "before": BEFORE}})
    assert fire_texts(found) == (
        "fire quality a long: share activated went from 0.80 to 0.20",
        "fire quality a long: mean R went from +0.40 to -1.00 on 5 and 5 trades",
    )
