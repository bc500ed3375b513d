"""The one loop over random critics, revisers and budgets: what holds whatever they say or fail to say."""

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.canonical import canonical_json, content_hash
from schemas.deliberation import Deliberation
from schemas.errors import ModelError
from schemas.settings.deliberation import QualitySettings
from schemas.vocabulary import Severity
from services.deliberation.budget import Budget
from services.deliberation.policies import (
    Acceptance,
    aggregate,
    best_score,
    best_verified,
    brings_nothing_new,
    fails_no_more,
    latest,
)
from services.deliberation.presets.quality import run_quality
from services.deliberation.refine import Draft, Policies, Task, Trace, refine
from services.model_calls.asking import GRACE_MS, NoReply
from tests.services.deliberation.claim_texts import BETTER, DRAFT, writer
from tests.services.deliberation.scripted import (
    HANGS,
    ListedCritic,
    ListedWriter,
    Ticks,
    failing,
    found,
    improved,
    scored,
    texts,
    view,
)

TASK = Task("")
FIRST = "The first text."
few = settings(max_examples=60)

shares = st.sampled_from([0.0, 0.3, 0.6, 0.9, 1.0])
severities = st.sampled_from(list(Severity))
findings = st.lists(
    st.builds(found, st.sampled_from(["a", "b"]), severities, st.sampled_from(["x", "y"])), max_size=2
)
scores = st.dictionaries(st.sampled_from(["accuracy", "completeness", "clarity"]), shares, max_size=3)
rule_views = st.builds(
    view,
    st.sampled_from(["accept", "revise", "reject"]),
    source=st.just("rule"),
    scores=scores,
    findings=findings,
)
model_views = st.builds(
    view,
    st.sampled_from(["accept", "revise", "unknown"]),
    scores=scores,
    overall=st.none() | shares,
    confidence=shares,
)
failures = st.sampled_from(["timeout", "rate_limit", "reply_malformed"]).map(lambda kind: NoReply(kind, kind))
errors = st.sampled_from(["server", "refused"]).map(failing)


@st.composite
def loops(draw: Any) -> dict[str, Any]:
    """Critics, a reviser, policies and a budget, at random."""
    rules = draw(st.lists(st.lists(rule_views, min_size=1, max_size=4), max_size=2))
    models = draw(st.lists(st.lists(model_views | failures | errors, min_size=1, max_size=4), max_size=2))
    texts_of = st.sampled_from([FIRST, "A second text.", "A third text.", "A fourth one."])
    return {
        "critics": [ListedCritic(reply, "rule") for reply in rules]
        + [ListedCritic(reply, "model") for reply in models],
        "reviser": draw(
            st.none()
            | st.builds(
                ListedWriter,
                st.lists(texts_of | failures | errors, min_size=1, max_size=4),
                st.sampled_from(["model", "rules"]),
            )
        ),
        "policies": Policies(
            Acceptance(
                draw(st.none() | shares),
                draw(shares),
                draw(st.none() | st.integers(1, 2)),
            ),
            draw(st.sampled_from([brings_nothing_new, fails_no_more])),
            draw(st.sampled_from([latest, best_score, best_verified])),
            critique_again=draw(st.booleans()),
        ),
        "rounds": draw(st.integers(0, 3)),
        "calls": draw(st.integers(0, 4)),
        "tokens": draw(st.none() | st.integers(0, 40)),
    }


def ran(loop: dict[str, Any]) -> tuple[Deliberation, Budget, Budget]:
    parent = Budget(0, loop["calls"], loop["tokens"], timer=Ticks())
    child = parent.child(rounds=loop["rounds"], calls=3)
    for part in loop["critics"]:
        part.heard.clear()
    if loop["reviser"] is not None:
        loop["reviser"].place = 0
    work = refine(
        TASK, FIRST, loop["critics"], loop["reviser"], loop["policies"], child,
        preset="test",
    )  # fmt: skip
    return asyncio.run(work), child, parent


def failing_of(done: Deliberation, text: str) -> int:
    number = next(c.number for c in done.candidates if c.text == text)
    return sum(
        item.severity in (Severity.MAJOR, Severity.BLOCKER)
        for reply in done.critiques
        if reply.candidate == number and reply.source == "rule"
        for item in reply.findings
    )


@few
@given(loops())
def test_whatever_is_said_the_text_is_a_candidate_and_the_calls_stay_within_the_budget(loop):
    done, child, parent = ran(loop)
    assert done.initial == FIRST
    assert done.final in {candidate.text for candidate in done.candidates}
    assert len(done.candidates) <= loop["rounds"] + 1
    assert done.usage == child.used == parent.used
    assert child.used.calls <= min(3, loop["calls"])
    assert done.stop_reason is not None
    assert [c.number for c in done.candidates] == list(range(len(done.candidates)))
    assert {reply.candidate for reply in done.critiques} <= {c.number for c in done.candidates}


@few
@given(loops())
def test_blocker_is_never_accepted(loop):
    done, _, _ = ran(loop)
    blocked = {
        reply.candidate
        for reply in done.critiques
        if reply.verdict == "reject" or any(item.severity is Severity.BLOCKER for item in reply.findings)
    }
    final = [c.number for c in done.candidates if c.text == done.final]
    if done.status == "accepted":
        assert not set(final) <= blocked
        assert done.degraded_from is None
    if 0 in blocked:
        assert done.status == "blocked"
        assert done.stop_reason == "blocker"


@few
@given(loops(), st.sampled_from([brings_nothing_new, fails_no_more]))
def test_best_verified_never_fails_more_than_the_first_text(loop, application):
    loop["policies"] = Policies(loop["policies"].acceptance, application, best_verified)
    done, _, _ = ran(loop)
    if done.final in {c.text for c in done.candidates}:
        assert min(failing_of(done, done.final), failing_of(done, FIRST)) == failing_of(done, done.final)
        assert done.verified_gain is not None or done.stop_reason == "blocker"
        assert (done.verified_gain or 0) >= 0


@few
@given(st.lists(model_views, min_size=1, max_size=4), st.integers(1, 3))
def test_best_score_is_never_below_the_first_one(quoted, rounds):
    policies = Policies(Acceptance(0.95), brings_nothing_new, best_score)
    writer = ListedWriter(["Two.", "Three.", "Four."])
    done = asyncio.run(
        refine(
            TASK, FIRST, [ListedCritic(quoted, "model")], writer, policies,
            Budget(rounds, 9, timer=Ticks()), preset="test",
        )
    )  # fmt: skip
    overall = {
        c.text: aggregate([shown for shown in done.critiques if shown.candidate == c.number]).overall
        for c in done.candidates
    }
    assert (overall[done.final] or 0.0) >= (overall[FIRST] or 0.0)
    if (overall[done.final] or 0.0) == (overall[FIRST] or 0.0):
        assert done.final == FIRST


@few
@given(st.lists(rule_views | model_views, max_size=4), rule_views | model_views)
def test_adding_a_critic_never_softens_a_verdict(quoted, added):
    order = {"unknown": 0, "accept": 0, "revise": 1, "reject": 2}
    before, after = aggregate(quoted), aggregate([*quoted, added])
    assert order[after.verdict] >= order[before.verdict]
    assert set(before.findings) <= set(after.findings)
    assert aggregate([added, *quoted]).verdict == after.verdict


@few
@given(st.lists(rule_views, min_size=1, max_size=3), st.lists(model_views, max_size=3))
def test_model_may_lower_but_never_raise_what_rules_say(rules, models):
    order = {"unknown": 0, "accept": 0, "revise": 1, "reject": 2}
    alone, both = aggregate(rules), aggregate([*rules, *models])
    assert order[both.verdict] >= order[alone.verdict]
    capped = {
        name: min(r.scores[name] for r in rules if name in r.scores) for r in rules for name in r.scores
    }
    if capped and both.overall is not None:
        named = {name for reply in models for name in reply.scores if reply.verdict != "unknown"} | set(
            capped
        )
        assert both.overall <= sum(capped.get(name, 1.0) for name in named) / len(named) + 1e-12


def test_score_of_a_dimension_that_only_a_rule_has_counts_beside_a_models():
    rule = view(source="rule", scores={"accuracy": 0.2})
    model = view(scores={"completeness": 1.0}, overall=1.0)
    assert aggregate([rule, model]).overall == pytest.approx(0.6)


def test_blocker_blocks_even_in_a_critique_that_could_not_be_read():
    reply = view("unknown", source="rule", findings=[found(severity=Severity.BLOCKER)])
    assert aggregate([reply]).verdict == "reject"
    assert aggregate([reply, view("accept")]).verdict == "reject"


@few
@given(loops())
def test_same_inputs_and_replies_give_the_same_bytes(loop):
    first, second = ran(loop)[0], ran(loop)[0]
    assert canonical_json(first.payload()) == canonical_json(second.payload())


def hash_of(trace):
    return content_hash([event.payload() for event in trace.events])


def test_trace_has_the_same_hash_whatever_the_time():
    hashes, payloads = set(), set()
    for step in (0.0, 7.0):
        models, _ = texts(quality=[scored(60), scored(90)], improvement=improved(BETTER))
        trace = Trace()
        trace.add("begun", 3.0 * step, name="x")
        budget = Budget(0, 9, timer=Ticks(step))
        work = run_quality(TASK, DRAFT, QualitySettings(), budget, models=models, facts=writer())
        done = asyncio.run(work)
        hashes.add(hash_of(trace))
        payloads.add(canonical_json(done.payload()))
        assert done.usage.calls == 3
    assert len(hashes) == len(payloads) == 1
    changed = Trace()
    changed.add("begun", name="y")
    assert hash_of(changed) not in hashes


ACCEPTS = view("accept")
WANTS = view("revise", findings=[found()])


@pytest.mark.parametrize("failure", [HANGS, failing("server")], ids=["hangs", "fails"])
@pytest.mark.parametrize("place", ["generator", "rule", "second critic", "model", "reviser"])
def test_failure_at_any_await_returns_the_original_text_within_the_deadline(place, failure):
    critics = [ListedCritic([WANTS if place == "reviser" else ACCEPTS], "rule")]
    if place == "rule":
        critics[0].quoted = [failure]
    if place == "second critic":
        critics.append(ListedCritic([failure], "rule"))
    critics.append(ListedCritic([failure if place == "model" else ACCEPTS], "model"))
    writer = ListedWriter([failure])
    draft: Any = ListedWriter([failure]) if place == "generator" else FIRST
    budget = Budget(2, 9, deadline_ms=5.0)
    done = asyncio.run(
        refine(
            TASK, draft, critics, writer if place == "reviser" else ListedWriter(["Other."]), Policies(),
            budget, preset="test",
        )
    )  # fmt: skip
    assert done.final == ("" if place == "generator" else FIRST)
    assert done.stop_reason == "model_failed"
    assert done.degraded_from == f"full: {'timeout' if failure == HANGS else 'server'}"
    assert done.error
    assert done.status == ("failed" if place == "generator" else "unchanged")
    # Each collaborator may overrun by its grace; together they stay far from the hour that they hang.
    assert done.elapsed_ms < 5.0 + 4 * (2 * GRACE_MS) + 1_000.0


def test_call_without_time_left_is_made_and_recorded():
    models, model = texts(quality=scored(95), improvement=improved(BETTER))
    timer = Ticks()
    budget = Budget(0, 9, deadline_ms=10.0, timer=timer)
    timer.now = int(50e6)
    done = asyncio.run(run_quality(TASK, FIRST, QualitySettings(), budget, models=models))
    assert model.deadlines == [0.0]
    assert done.usage.calls == 1
    assert (done.status, done.stop_reason) == ("accepted", "accepted")


def test_recorded_lateness_ends_as_a_failure_and_not_by_the_clock():
    models, model = texts(quality=failing("budget_spent"), improvement=improved(BETTER))
    done = asyncio.run(run_quality(TASK, FIRST, QualitySettings(), Budget(0, 9), models=models))
    assert done.degraded_from == "full: budget_spent"
    assert (done.final, done.status) == (FIRST, "unchanged")
    assert done.usage.calls == model.count("text_quality")


@pytest.mark.parametrize(
    ("author", "count", "reason"),
    [("rules", 1, "no_revision"), ("given", 1, "no_revision"), ("model", 3, "rounds")],
)
def test_same_text_ends_the_loop_by_rules_and_counts_a_round_by_a_model(author, count, reason):
    writer = ListedWriter([FIRST], author)
    work = refine(TASK, FIRST, [ListedCritic([WANTS])], writer, Policies(), Budget(2, 9), preset="test")
    done = asyncio.run(work)
    assert (len(done.candidates), done.stop_reason, done.final) == (count, reason, FIRST)


def test_writer_that_fails_hands_its_failure_on():
    writer = ListedWriter([failing("rate_limit")])
    done = asyncio.run(refine(TASK, writer, [], None, Policies(), Budget(1, 9), preset="t"))
    assert (done.status, done.final) == ("failed", "")
    assert "rate_limit" in str(done.degraded_from)


@pytest.mark.parametrize("rounds", [0, 10_000])
@pytest.mark.parametrize("calls", [0, 10_000])
@pytest.mark.parametrize("text", ["", FIRST, "word " * 2_000])
def test_budgets_of_any_size_and_texts_of_any_length(rounds, calls, text):
    critic = ListedCritic([view("accept", overall=0.5)], "model")
    done = asyncio.run(
        refine(
            TASK, text, [critic], ListedWriter(["New."]), Policies(Acceptance(0.9, patience=1)),
            Budget(rounds, calls), preset="test",
        )
    )  # fmt: skip
    assert done.final == text
    assert done.stop_reason == ("budget" if calls == 0 else "rounds" if rounds == 0 else "no_gain")
    assert done.usage.calls == (0 if calls == 0 else 1 if rounds == 0 else 3)


def test_without_critics_nothing_is_known_and_nothing_changes():
    done = asyncio.run(refine(TASK, FIRST, [], ListedWriter(["New."]), Policies(), Budget(3, 9), preset="t"))
    assert (done.status, done.stop_reason, done.final) == ("unchanged", "low_confidence", FIRST)
    assert done.usage.calls == 0


def test_models_are_asked_only_where_no_rule_wants_a_change():
    model = ListedCritic([view("accept", overall=0.2)], "model")
    rule = ListedCritic([WANTS, ACCEPTS])
    done = asyncio.run(
        refine(
            TASK,
            FIRST,
            [rule, model],
            ListedWriter(["Second."], "rules"),
            Policies(),
            Budget(2, 9),
            preset="t",
        )
    )
    assert rule.heard == [FIRST, "Second."]
    assert model.heard == ["Second."]
    assert (done.final, done.verified_gain) == ("Second.", 1)


def test_models_word_is_told_with_whether_the_rules_agreed():
    model = ListedCritic([view("revise", confidence=0.9)], "model")
    done = asyncio.run(
        refine(TASK, FIRST, [ListedCritic([ACCEPTS]), model], None, Policies(), Budget(1, 9), preset="t")
    )
    assert [reply.agreed for reply in done.critiques] == [None, False]
    assert done.stop_reason == "no_revision"


def test_text_of_a_model_with_a_new_fault_does_not_stand():
    rule = ListedCritic([ACCEPTS, view("revise", findings=[found("new")])])
    model = ListedCritic([view("accept", overall=0.1), view("accept", overall=1.0)], "model")
    done = asyncio.run(
        refine(
            TASK, FIRST, [rule, model], ListedWriter(["Worse."]), Policies(Acceptance(0.8)),
            Budget(1, 9), preset="t",
        )
    )  # fmt: skip
    assert (done.final, done.status) == (FIRST, "unchanged")
    assert done.verified_gain == 0


def test_guard_skips_before_anybody_is_asked():
    critic = ListedCritic([ACCEPTS])
    policies = Policies(guard=lambda text: "too_short")
    done = asyncio.run(refine(TASK, FIRST, [critic], None, policies, Budget(1, 1), preset="t"))
    assert (done.status, done.skip_reason, done.final, done.stop_reason) == (
        "skipped",
        "too_short",
        FIRST,
        None,
    )
    assert critic.heard == []


def test_budget_of_a_child_charges_its_parent_and_ends_with_it():
    timer = Ticks()
    parent = Budget(0, 3, tokens=100, deadline_ms=100.0, timer=timer)
    child = parent.child(rounds=5, calls=9)
    assert (child.rounds, child.calls, child.left_ms) == (5, 3, 100.0)
    timer.now = int(40e6)
    late = child.child(rounds=1)
    assert late.left_ms == 60.0
    late.charge(Draft("x").usage.model_copy(update={"calls": 1, "input_tokens": 100}))
    assert (parent.used.calls, child.used.calls, parent.allows_call, late.allows_call) == (1, 1, False, False)
    timer.now = int(900e6)
    assert late.left_ms == child.left_ms == parent.left_ms == 0.0


def test_error_of_a_model_is_told_in_characters_that_every_store_takes():
    failure = ModelError("bad \ud800 \x1b[2J words", kind="server")
    done = asyncio.run(
        refine(TASK, FIRST, [ListedCritic([failure], "model")], None, Policies(), Budget(0, 1), preset="t")
    )
    assert done.error == "bad \\ud800 \\x1b[2J words"
    assert done.content_hash
