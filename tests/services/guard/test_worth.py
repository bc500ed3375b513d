import numpy as np
import pandas as pd
import pytest

from benchmarks.guard_worth import NO_WORSE, SPREAD_OF_ONE, World, read_once, single
from schemas.guard import Order, Verdict
from schemas.settings import ExecutionSettings
from services.guard.ledger import CheckedOrder, Ledger
from services.guard.worth import trade_refused, weigh_refusals, worth_of
from trading_core.bars import BarSeries

HOUR = 3_600_000_000_000
START = 1_600_000_000_000_000_000 // HOUR * HOUR
FREE = ExecutionSettings(fee_bps=0.0, slippage_bps=0.0, spread_bps=0.0)
LONG = {"symbol": "UP", "side": "buy", "quantity": 1.0, "stop": 98.0, "target": 104.0, "horizon_bars": 5}
# Opens at 100; the close of bar 3 is the first that another price than 100 could be known by.
CLOSES = [100.0, 100.0, 100.0, 100.0, 101.0, 103.0, 105.0, 105.0, 105.0, 105.0, 105.0, 105.0, 105.0]


def bars(closes=CLOSES, lows=None, start=START):
    opens = [100.0, *closes[:-1]]
    highs = [max(pair) for pair in zip(opens, closes, strict=True)]
    lows = lows or [min(pair) for pair in zip(opens, closes, strict=True)]
    index = pd.to_datetime([start + HOUR * row for row in range(len(closes))], utc=True)
    frame = pd.DataFrame({"open": opens, "high": highs, "low": lows, "close": closes, "volume": 1.0}, index)
    return BarSeries.from_frame(frame, symbol="UP")


def checked(number, status="block", mode="enforce", row=3, reduces=False, **fields):
    """An order whose verdict fell half an hour into the bar of a row."""
    order, at = Order(**{**LONG, **fields}), START + HOUR * row + HOUR // 2
    verdict = Verdict(
        id=f"tt{number}", order_hash=order.content_hash, status=status, reply="", at=at, expires_at=at,
        mode=mode, reduces=reduces,
    )  # fmt: skip
    return CheckedOrder(order, verdict)


def ledger(*orders, settled=None):
    kept = Ledger(orders={order.id: order for order in orders})
    for key, r in (settled or {}).items():
        kept.settled[key] = {"r": r, "closed_at": kept.orders[key].at + HOUR // 2}
    return kept


def traded(kept, series=None, now=START + 99 * HOUR):
    return list(trade_refused(kept, {"UP": bars() if series is None else series}, FREE, now))


def weighed(of):
    for row in traded(of):
        of.outcomes[row["verdict_id"]] = row
    return worth_of(of)


def test_worse_orders_refused_helped_with_the_mean_inside_the_interval():
    draw = np.random.default_rng(4)
    refused = draw.random(400) < 0.4
    r = draw.standard_normal(400) - 0.6 * refused
    worth = weigh_refusals(r, refused)
    assert worth["answer"] == "helped"
    assert 0.0 < worth["lower"] < worth["worth_r"] < worth["upper"]
    assert worth["worth_r"] == pytest.approx(r.mean() - r[refused].mean(), abs=0.1)  # within windows of time
    assert worth["orders_needed"] == 0
    assert weigh_refusals(-r, refused)["answer"] == "hurt"


def test_orders_needed_show_this_worth_in_most_records_of_that_length():
    draw = np.random.default_rng(16)
    refused = draw.random(150) < 0.3
    worth = weigh_refusals(draw.standard_normal(150) - 0.4 * refused, refused)
    assert worth["answer"] == "unknown"
    lines = []
    for _ in range(30):
        later = draw.random(150 + worth["orders_needed"]) < refused.mean()
        gap = worth["worth_r"] / (1.0 - refused.mean())
        lines.append(weigh_refusals(draw.standard_normal(len(later)) - gap * later, later)["answer"])
    assert lines.count("helped") > 15


def test_worth_that_so_many_orders_find_is_found_in_four_readings_of_five():
    lines = [draw_and_weigh(seed, 0.0)["finds_r"] for seed in range(20)]
    finds = float(np.median(lines))
    found = [draw_and_weigh(seed, finds)["answer"] == "helped" for seed in range(100)]
    assert 0.7 <= np.mean(found) <= 0.92


def draw_and_weigh(seed, worth):
    """300 orders with a spread of 1R, of which a third is refused."""
    draw = np.random.Generator(np.random.PCG64([9, seed]))
    refused = draw.random(300) < 1.0 / 3.0
    return weigh_refusals(draw.standard_normal(300) - 1.5 * worth * refused, refused)


def test_one_outcome_that_decides_leaves_the_answer_open():
    draw = np.random.default_rng(8)
    refused = draw.random(300) < 0.5
    r = draw.standard_normal(300) - 0.8 * refused
    assert weigh_refusals(r, refused)["answer"] == "helped"
    r[np.flatnonzero(refused)[0]] = 400.0
    assert weigh_refusals(r, refused)["answer"] == "unknown"


def test_refused_orders_that_all_lost_say_nothing_until_their_target_is_known():
    refused = np.arange(300) % 5 == 0
    r = np.where(refused, -1.0, np.where(np.arange(300) % 3 == 0, 2.0, -1.0))
    assert weigh_refusals(r, refused)["answer"] == "unknown"
    assert weigh_refusals(r, refused, best=2.0)["answer"] == "helped"
    assert weigh_refusals(r, refused, best=32.0)["answer"] == "unknown"
    assert (
        weigh_refusals(np.where(refused, r + 2.0, -1.0), refused)["answer"] == "unknown"
    )  # none of the others won


def test_few_orders_on_a_side_have_no_figures():
    refused = np.arange(60) < 9
    assert weigh_refusals(np.linspace(-1.0, 1.0, 60), refused) == {
        "answer": "unknown", "worth_r": None, "lower": None, "upper": None, "finds_r": None,
        "orders_needed": None,
    }  # fmt: skip


@pytest.mark.parametrize("name", sorted(NO_WORSE))
def test_refused_orders_that_are_no_worse_are_seldom_called_helped(name):
    assert read_once(NO_WORSE[name], 0.2, 60, seed=11).count("helped") <= 7  # 5 % and three errors


def test_refusals_worth_a_third_of_a_risk_are_found_where_half_are_refused():
    world = World(SPREAD_OF_ONE, single, gap=-0.6)
    assert read_once(world, 0.5, 40, seed=12).count("helped") >= 32


def test_refused_order_is_traded_from_the_open_after_the_bar_of_its_verdict():
    (found,) = traded(ledger(checked(1)))
    assert found["verdict_id"] == "tt1"
    assert found["r"] == pytest.approx(2.0)  # in at 100, out at 104, 2 at risk
    assert found["closed_at"] == START + HOUR * 7


def test_price_before_the_verdict_and_in_its_bar_changes_nothing():
    before = [50.0, 60.0, 70.0, 100.0, *CLOSES[4:]]
    assert traded(ledger(checked(1)), bars(before))[0]["r"] == pytest.approx(2.0)
    after = [*CLOSES[:4], 97.0, *CLOSES[5:]]
    assert traded(ledger(checked(1)), bars(after))[0]["r"] == pytest.approx(-1.0)


def test_refused_order_whose_bars_have_not_come_waits():
    kept = ledger(checked(1))
    assert traded(kept, bars(CLOSES[:6])) == []
    assert traded(kept, bars(start=START + 10 * HOUR)) == []  # begins after the verdict
    assert traded(kept, now=START + 7 * HOUR - 1) == []  # the bar that ends it has not closed
    assert worth_of(kept)["not_counted"] == {"no_bars_yet": 1}


def test_refused_limit_is_filled_at_its_price_or_never():
    dips = [*[100.0] * 5, 99.0, 103.0, *[105.0] * 6]
    (filled,) = traded(ledger(checked(1, kind="limit", price=99.0)), bars(CLOSES, dips))
    assert filled["r"] == pytest.approx(5.0)
    (missed,) = traded(ledger(checked(1, kind="limit", price=99.0, horizon_bars=3)))
    assert (missed["r"], missed["problem"]) == (None, "never_filled")


def test_same_trade_refused_twice_or_sent_as_well_counts_once():
    again = ledger(checked(1), checked(2), checked(3, row=4))
    assert [row["problem"] for row in traded(again)] == [None, "repeated", None]
    sent = ledger(checked(1), checked(2, status="pass"))
    assert [row["problem"] for row in traded(sent)] == ["repeated"]


def test_stop_nearer_than_the_spread_has_no_r_on_paper():
    wide = FREE.model_copy(update={"spread_bps": 5.0})  # 0.05 at 100
    kept = ledger(checked(1, stop=99.96), checked(2, row=4, stop=99.9))
    near, far = trade_refused(kept, {"UP": bars()}, wide, START + 99 * HOUR)
    assert (near["r"], near["problem"]) == (None, "stop_within_spread")
    assert far["problem"] is None


def test_orders_that_were_checked_while_the_same_bet_was_open_count_once():
    kept = ledger(*(checked(number, row=number) for number in range(1, 6)), checked(6, "pass", row=2))
    for number, closes in ((1, 4), (2, 9), (3, 9), (4, 9), (5, 9), (6, 9)):
        kept.settled[f"tt{number}"] = {"r": -1.0, "closed_at": START + HOUR * closes}
    found = worth_of(kept)  # 2 and 3 fall into 1, 5 into 4; what passed is another bet
    assert (found["refused"], found["passed"]) == (2, 1)
    assert found["not_counted"] == {"repeated": 3}


def test_target_that_a_refused_order_may_reach_widens_the_interval():
    r, found = {f"tt{number}": 0.1 * (number % 3) - number % 2 for number in range(80)}, []
    for target in (102.0, 140.0):
        answer = {"mode": "shadow", "price": 100.0, "target": target}
        orders = (checked(n, ("pass", "block")[n % 2], row=n, **answer) for n in range(80))
        found.append(worth_of(ledger(*orders, settled=r)))
    near, far = found
    assert near["answer"] == "helped"
    assert far["lower"] < 0.0 < near["lower"]


def test_order_that_was_sent_is_not_traded_on_paper():
    shadow = ledger(checked(1, mode="shadow"), checked(2, row=4), settled={"tt2": -0.5})
    assert traded(shadow) == []
    assert worth_of(shadow)["not_counted"] == {"not_settled": 1}


def test_outcome_that_is_known_is_not_found_again():
    kept = ledger(checked(1))
    (found,) = traded(kept)
    kept.outcomes["tt1"] = found
    assert traded(kept) == []


def test_worth_counts_settled_and_paper_orders_and_names_the_rest():
    kept = ledger(
        checked(1), checked(2, "pass", row=1), checked(3, "pass", row=2), checked(4, reduces=True),
        checked(5, stop=None), checked(6, "pass", row=5), settled={"tt2": 1.5, "tt3": None},
    )  # fmt: skip
    found = weighed(kept)
    assert (found["refused"], found["passed"]) == (1, 1)
    assert found["not_counted"] == {"exit": 1, "no_r": 1, "no_stop": 1, "not_settled": 1}


def test_worth_of_many_orders_is_that_of_their_outcomes():
    is_refused = np.random.default_rng(6).random(90) < 0.6
    orders = [
        checked(number, "block" if refused else "pass", "shadow", row=number, price=100.0)
        for number, refused in enumerate(is_refused)
    ]
    r = {f"tt{number}": 0.01 * (number % 7) - refused for number, refused in enumerate(is_refused)}
    found = worth_of(ledger(*orders, settled=r))
    assert found["answer"] == "helped"
    assert found["refused"] + found["passed"] == 90
    assert found["worth_r"] == pytest.approx(1.0 - is_refused.mean(), abs=0.02)
