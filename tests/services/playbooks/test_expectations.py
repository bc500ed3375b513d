import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import InvariantViolation
from services.playbooks.expectations import ExpectationBook
from services.playbooks.measures import outcome_rules
from tests.services.playbooks.samples import DAY, NOON, definition, episode, loser
from trading_core.clock import SimulatedClock

LATE = NOON + 10_000 * DAY


def book(*episodes, now=LATE) -> ExpectationBook:
    found = ExpectationBook(SimulatedClock(now))
    for item in episodes:
        found.record(item)
    return found


def test_expectation_without_trades_is_the_prior():
    found = book().summary(definition(), LATE)
    prior = definition().expectation
    assert found.n == 0
    assert (found.expectancy_r, found.hit_rate) == (0.0, prior.hit_rate)
    assert (found.hold_p50_bars, found.hold_p90_bars) == (prior.hold_p50_bars, prior.hold_p90_bars)
    assert (found.winner_mae_p80_r, found.mfe_p50_r) == (prior.winner_mae_p80_r, prior.mfe_p50_r)
    assert found.prior == prior


def test_expectation_with_trades_is_weighted_by_their_number():
    trades = [episode(k, r=2.0, hold_bars=8, mae_r=-0.1, mfe_r=2.0) for k in range(20)]
    found = book(*trades).summary(definition(version=3), LATE)
    assert (found.n, found.playbook_version) == (20, 3)  # prior weight is 20, so each figure lies halfway
    assert found.expectancy_r == pytest.approx(1.0)
    assert found.hit_rate == pytest.approx((0.4 + 1.0) / 2)
    assert found.hold_p50_bars == pytest.approx((4 + 8) / 2)
    assert found.hold_p90_bars == pytest.approx((10 + 8) / 2)
    assert found.winner_mae_p80_r == pytest.approx((-0.7 - 0.1) / 2)
    assert found.mfe_p50_r == pytest.approx((1.0 + 2.0) / 2)


def test_winners_excursion_is_weighted_by_winners_and_leaves_eighty_percent_above():
    winners = [episode(k, mae_r=-k / 10) for k in range(11)]
    losers = [loser(100 + k) for k in range(50)]
    found = book(*winners, *losers).summary(definition(), LATE)
    assert found.winner_mae_p80_r == pytest.approx((20 * -0.7 + 11 * -0.8) / 31)
    assert sum(item.mae_r >= -0.8 for item in winners) / 11 >= 0.8


def test_scratch_counts_as_a_trade_but_not_as_a_hit():
    found = book(*[episode(k, r=0.4) for k in range(20)]).summary(definition(), LATE)
    assert found.hit_rate == pytest.approx(0.2)


def test_episodes_that_may_not_teach_are_ignored_and_counted():
    found = book()
    assert not found.record(episode(1, no_learn=True, r=9.0))
    assert not found.record(episode(2, ledger="shadow", r=9.0))
    assert found.ignored == 2
    assert found.summary(definition(), LATE).n == 0


def test_expectation_of_one_playbook_ignores_the_trades_of_another():
    found = book(episode(1, playbook_id="beta", r=3.0))
    assert found.summary(definition("alpha"), LATE).n == 0
    assert found.summary(definition("beta"), LATE).n == 1


@given(st.permutations([(k, r) for k, r in enumerate([-1.0, 0.2, 0.7, 1.9, -0.4, 3.1])]), st.integers(-1, 7))
def test_expectation_at_a_time_does_not_see_later_trades_or_their_order(order, day):
    known_at = NOON + day * DAY
    trades = [episode(k, r=r) for k, r in order]
    past = sorted((item for item in trades if item.known_at <= known_at), key=lambda item: item.known_at)
    assert book(*trades).summary(definition(), known_at) == book(*past).summary(definition(), known_at)


def test_summary_is_cached_until_a_new_trade_of_the_playbook():
    found = book(episode(1))
    first = found.summary(definition(), LATE)
    assert found.summary(definition(), LATE) is first
    found.record(episode(2, playbook_id="beta"))
    pooled = found.summary(definition(), LATE)
    assert pooled == first.model_copy(update={"shrunken_r": pooled.shrunken_r})
    assert found.summary(definition(), LATE) is pooled
    found.record(episode(3))
    assert found.summary(definition(), LATE).n == 2


def test_trades_of_other_rules_are_no_measure_of_the_version_in_force():
    old, new = definition(), definition(horizon_bars=11, version=2)
    banned = definition(version=3, risk_fraction=0.001)
    rules = {entry.content_hash: outcome_rules(entry) for entry in (old, new, banned)}
    found = ExpectationBook(SimulatedClock(LATE), rules.__getitem__)
    found.record(episode(1, playbook_hash=old.content_hash))
    assert [found.summary(entry, LATE).n for entry in (old, new, banned)] == [1, 0, 1]
    found.record(episode(2, playbook_hash=new.content_hash))
    assert [found.summary(entry, LATE).n for entry in (old, new, banned)] == [1, 1, 1]


def test_trade_that_arrives_late_is_seen_from_when_it_was_known():
    found = book(episode(5, r=3.0))
    assert found.summary(definition(), NOON + 5 * DAY).expectancy_r == pytest.approx(3.0 / 21)
    found.record(episode(3, r=-1.0))
    assert found.summary(definition(), NOON + 4 * DAY).expectancy_r == pytest.approx(-1.0 / 21)


def test_summary_after_the_clock_and_a_trade_recorded_twice_raise():
    found = book(episode(1), now=NOON + DAY)
    with pytest.raises(InvariantViolation, match="that is the future"):
        found.summary(definition(), NOON + DAY + 1)
    with pytest.raises(InvariantViolation, match="recorded already"):
        found.record(episode(1))


def test_reader_reads_and_has_no_way_to_record():
    found = book(episode(1))
    reader = found.reader()
    assert reader.summary(definition(), LATE) == found.summary(definition(), LATE)
    assert {name for name in dir(reader) if not name.startswith("_")} == {"own", "summary"}
    with pytest.raises(AttributeError):
        reader.record(episode(2))  # type: ignore[attr-defined]
