from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.canonical import datetime_to_ns
from schemas.vocabulary import OverrideReason, SlowSkipReason
from services.slow_loop.cadence import (
    CadenceFacts,
    Run,
    Skip,
    batch_is_full,
    due,
    early_moment,
    examine_early,
    surprise_moment,
)
from services.statistics.slots import DAY_NS, INTERVAL_NS, is_slot, last_slot, next_slot

TIMES = st.integers(0, 4_000 * 86_400).map(lambda seconds: seconds * 1_000_000_000)
INTERVALS = st.sampled_from(["daily", "weekly"])
COUNTS = st.dictionaries(st.sampled_from(["a", "b", "c"]), st.integers(0, 60))


def at(text):
    return datetime_to_ns(datetime.fromisoformat(text).replace(tzinfo=UTC))


@st.composite
def facts(draw):
    now = draw(TIMES)
    earlier = st.none() | st.integers(0, now)
    return CadenceFacts(
        now=now,
        interval=draw(INTERVALS),
        started_at=draw(st.integers(0, now)),
        last_run=draw(earlier),
        last_structural=draw(earlier),
        new_episodes=draw(COUNTS),
        playbook_minimum=draw(st.dictionaries(st.sampled_from(["a", "b"]), st.integers(20, 50))),
        surprise=draw(st.floats(0, 5)),
        surprise_seen=draw(st.floats(0, 5)),
        structural_interval_days=draw(st.integers(7, 30)),
        safety_override=draw(st.none() | st.sampled_from(list(OverrideReason))),
        enabled=draw(st.booleans()),
    )


def ready(**changes):
    start = at("2024-01-01")
    base = CadenceFacts(
        now=start + 7 * DAY_NS, interval="weekly", started_at=start, last_run=start, new_episodes={"a": 20}
    )
    return replace(base, **changes)


@pytest.mark.parametrize(
    ("after", "interval", "slot"),
    [
        ("2024-01-01", "weekly", "2024-01-08"),
        ("2024-01-07T23:59:59", "weekly", "2024-01-08"),
        ("2024-01-01", "daily", "2024-01-02"),
        ("2024-02-28T12:00", "daily", "2024-02-29"),
    ],
)
def test_next_slot_is_the_following_midnight_or_monday(after, interval, slot):
    assert next_slot(at(after), interval) == at(slot)
    assert is_slot(at(slot), interval)


@given(TIMES, INTERVALS)
def test_next_slot_lies_after_and_within_one_interval(after, interval):
    slot = next_slot(after, interval)
    assert after < slot <= after + INTERVAL_NS[interval]
    assert is_slot(slot, interval)


@given(TIMES, INTERVALS)
def test_last_slot_is_the_slot_before_the_next_one(at_ns, interval):
    slot = last_slot(at_ns, interval)
    assert slot <= at_ns < slot + INTERVAL_NS[interval]
    assert next_slot(slot, interval) == next_slot(at_ns, interval)


def test_due_with_both_gates_open_is_a_run_and_with_either_shut_a_skip():
    assert due(ready()) == Run(ready().now, "slot", True)
    early, few = due(ready(now=ready().now - 1)), due(ready(new_episodes={"a": 19}))
    assert isinstance(early, Skip)
    assert isinstance(few, Skip)
    assert (early.reason, few.reason) == (
        SlowSkipReason.INTERVAL_NOT_ELAPSED,
        SlowSkipReason.INSUFFICIENT_EPISODES,
    )
    assert (few.counted, few.needed) == (19, 20)


@given(facts())
def test_run_implies_both_gates(given_facts):
    answer = due(given_facts)
    if isinstance(answer, Run):
        since = given_facts.started_at if given_facts.last_run is None else given_facts.last_run
        if given_facts.last_run is not None:
            assert given_facts.now - since >= INTERVAL_NS[given_facts.interval]
        assert sum(given_facts.new_episodes.values()) >= given_facts.minimum_episodes
        assert given_facts.enabled


@given(facts(), st.floats(0, 100))
def test_surprise_never_changes_whether_it_runs(given_facts, surprise):
    calm, alarmed = due(replace(given_facts, surprise=0.0)), due(replace(given_facts, surprise=surprise))
    assert type(calm) is type(alarmed)
    if isinstance(alarmed, Run) and isinstance(calm, Run):
        assert alarmed.structural_allowed == calm.structural_allowed


def test_surprise_names_the_early_examination_and_opens_neither_gate():
    between = ready(now=ready().now + DAY_NS, surprise=1.0)
    assert due(between) == Run(between.now, "surprise", True)
    for shut, reason in (
        (replace(between, new_episodes={"a": 19}), SlowSkipReason.INSUFFICIENT_EPISODES),
        (replace(between, now=ready().now - DAY_NS), SlowSkipReason.INTERVAL_NOT_ELAPSED),
    ):
        assert examine_early(shut)
        skip = due(shut)
        assert isinstance(skip, Skip)
        assert (skip.reason, skip.trigger) == (reason, "surprise")
        assert not examine_early(replace(shut, surprise=0.999))


@given(facts())
def test_early_examination_is_a_full_batch_or_unseen_surprise_and_a_full_batch_runs(given_facts):
    full = isinstance(due(given_facts), Run)
    unseen = int(given_facts.surprise) > int(given_facts.surprise_seen)
    assert batch_is_full(given_facts) == full
    assert examine_early(given_facts) == (full or (given_facts.enabled and unseen))


def test_surprise_that_was_examined_asks_again_only_after_another_whole_limit():
    few = ready(now=ready().now + DAY_NS, new_episodes={"a": 9}, surprise=1.2)
    assert examine_early(few)
    assert not examine_early(replace(few, surprise_seen=1.2))
    assert not examine_early(replace(few, surprise_seen=1.2, surprise=1.9))
    assert examine_early(replace(few, surprise_seen=1.2, surprise=2.0))


def test_surprise_moment_is_when_the_limit_was_passed_whoever_looks_when():
    outcomes = [(DAY_NS, 0.4), (2 * DAY_NS, 0.7), (3 * DAY_NS, 0.1), (4 * DAY_NS, 0.9)]
    few = ready(new_episodes={"a": 4}, surprise=2.1)
    assert surprise_moment(few, outcomes) == 2 * DAY_NS
    assert surprise_moment(replace(few, surprise=1.2), outcomes[:3]) == 2 * DAY_NS
    assert surprise_moment(replace(few, surprise_seen=1.1), outcomes) == 4 * DAY_NS
    assert surprise_moment(replace(few, surprise_seen=2.1), outcomes) is None
    assert surprise_moment(replace(few, enabled=False), outcomes) is None


def test_batch_reached_between_slots_is_examined_and_run():
    between = ready(now=ready().now + DAY_NS)
    assert examine_early(between)
    assert due(between) == Run(between.now, "batch", True)


@given(facts())
def test_skip_names_a_later_slot_or_nothing(given_facts):
    answer = due(given_facts)
    if isinstance(answer, Skip) and answer.next_eligible is not None:
        assert answer.next_eligible > given_facts.now
        assert is_slot(answer.next_eligible, given_facts.interval)


@given(facts(), st.integers(1, 60))
def test_skip_never_extends_the_interval(given_facts, later_days):
    # Only the last run counts: after any number of skips the gate opens exactly when it would have.
    later = replace(given_facts, now=given_facts.now + later_days * DAY_NS)
    first = due(given_facts)
    if isinstance(first, Skip) and first.reason is SlowSkipReason.INTERVAL_NOT_ELAPSED:
        opens = first.next_eligible
        assert opens is not None
        answer = due(replace(later, now=opens))
        assert isinstance(answer, Run) or answer.reason is not SlowSkipReason.INTERVAL_NOT_ELAPSED


@given(facts())
def test_more_episodes_never_turn_a_run_into_a_skip(given_facts):
    more = replace(given_facts, new_episodes={k: v + 5 for k, v in given_facts.new_episodes.items()})
    if isinstance(due(given_facts), Run):
        assert isinstance(due(more), Run)


def test_playbook_minimum_keeps_a_playbook_out_of_the_batch_until_it_is_reached():
    below = ready(new_episodes={"a": 39, "b": 19}, playbook_minimum={"a": 40})
    assert isinstance(due(below), Skip)
    assert isinstance(due(replace(below, new_episodes={"a": 40})), Run)
    assert isinstance(due(replace(below, new_episodes={"a": 39, "b": 20})), Run)


@pytest.mark.parametrize(
    ("days", "override", "allowed", "named"),
    [
        (7, None, True, None),
        (6, None, False, None),
        (6, OverrideReason.KILL_SWITCH, True, OverrideReason.KILL_SWITCH),
        (6, OverrideReason.ENVELOPE_BREACH, True, OverrideReason.ENVELOPE_BREACH),
        (6, OverrideReason.VOLATILITY_SHOCK, False, None),
        (7, OverrideReason.KILL_SWITCH, True, None),
    ],
)
def test_structural_change_is_weekly_at_most_unless_a_listed_override_applies(days, override, allowed, named):
    daily = ready(interval="daily", safety_override=override)
    answer = due(replace(daily, last_structural=daily.now - days * DAY_NS))
    assert isinstance(answer, Run)
    assert (answer.structural_allowed, answer.override) == (allowed, named)


def test_loop_that_is_off_skips_with_its_reason():
    answer = due(ready(enabled=False))
    assert isinstance(answer, Skip)
    assert answer.reason is SlowSkipReason.DISABLED


def test_first_run_waits_for_the_first_slot_after_the_start():
    fresh = ready(last_run=None, started_at=at("2024-01-03"), now=at("2024-01-05"))
    answer = due(fresh)
    assert isinstance(answer, Skip)
    assert answer.next_eligible == at("2024-01-08")
    assert isinstance(due(replace(fresh, now=at("2024-01-08"))), Run)


@st.composite
def histories(draw):
    """Facts with the episodes that they count, by time, all known by then."""
    base = draw(facts())
    since = base.started_at if base.last_run is None else base.last_run
    times = draw(st.lists(st.integers(min(since, base.now), base.now), max_size=60).map(sorted))
    resolved = [(at_ns, draw(st.sampled_from(["a", "b", "c"]))) for at_ns in times]
    counts = {name: sum(item == name for _, item in resolved) for name in ("a", "b", "c")}
    return replace(base, new_episodes=counts), resolved


@given(histories())
def test_early_moment_is_one_at_which_both_gates_stand_open(history):
    now, resolved = history
    moment = early_moment(now, resolved)
    assert (moment is not None) == batch_is_full(now)
    if moment is not None:
        assert moment <= now.now
        known = [name for at_ns, name in resolved if at_ns <= moment]
        then = replace(now, now=moment, new_episodes={name: known.count(name) for name in ("a", "b", "c")})
        assert isinstance(due(then), Run)
        assert due(then).slot == moment


@given(histories(), st.integers(0, 30 * DAY_NS), st.lists(st.sampled_from(["a", "b"]), max_size=5))
def test_early_moment_does_not_depend_on_when_somebody_looks(history, later_ns, more):
    now, resolved = history
    moment = early_moment(now, resolved)
    later = now.now + later_ns
    seen = [*resolved, *((later, name) for name in more)]
    counts = {name: sum(item == name for _, item in seen) for name in ("a", "b", "c")}
    if moment is not None:
        assert early_moment(replace(now, now=later, new_episodes=counts), seen) == moment


@given(facts(), st.integers(0, 4_000 * 86_400))
def test_failed_attempt_holds_back_early_examinations_until_the_next_slot_and_no_slot(given_facts, seconds):
    attempt = seconds * 1_000_000_000
    failed = replace(given_facts, last_attempt=attempt)
    assert due(failed) == due(given_facts)
    answered = given_facts.last_run is not None and attempt <= given_facts.last_run
    waits = not answered and given_facts.now < next_slot(attempt, given_facts.interval)
    assert examine_early(failed) == (examine_early(given_facts) and not waits)
