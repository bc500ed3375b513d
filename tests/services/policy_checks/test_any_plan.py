"""Whatever a strategist writes, the checks answer with findings."""

import asyncio

from hypothesis import example, given
from hypothesis import strategies as st

from schemas.canonical import canonical_json
from schemas.settings import ReflectionSettings
from schemas.vocabulary import ReflectionStatus
from services.policy_checks import expectation, memory
from services.policy_checks.coherence import COHERENCE_CRITICS
from services.policy_checks.invariants import check_invariants
from services.policy_checks.plan_levels import read_levels
from services.policy_level_reflection_service import PolicyLevelReflectionService
from tests.services.policy_checks.faults import FAULTS
from tests.services.policy_checks.plans import PLANS, changed, right_request
from tests.services.policy_checks.right_plans import right_plans

SERVICE = PolicyLevelReflectionService(ReflectionSettings())
ROLES = ["setup", "activation", "refinement", "stop", "target", "invalidation"]
NUMBERS = st.floats(allow_nan=False, allow_infinity=False).map(lambda value: repr(abs(value)))
LEAVES = st.sampled_from(["close", "low", "ema_20", "atr_14", "sma_200", "rsi_14"]) | NUMBERS
LEVELS = st.recursive(
    LEAVES,
    lambda inner: (
        st.builds("({} {} {})".format, inner, st.sampled_from("+-*/"), inner)
        | st.builds("prev({}, 2)".format, inner)
        | st.builds("min({}, {})".format, inner, inner)
    ),
    max_leaves=4,
)
CONDITIONS = st.recursive(
    st.builds("{} {} {}".format, LEVELS, st.sampled_from(["<", "<=", ">", ">=", "=="]), LEVELS)
    | st.builds("crosses_above({}, {})".format, LEVELS, LEVELS)
    | st.builds("between({}, {}, {})".format, LEVELS, LEVELS, LEVELS),
    lambda inner: st.builds("({} and {})".format, inner, inner) | st.builds("not {}".format, inner),
    max_leaves=3,
)
VALUES = st.none() | st.floats(allow_nan=False, allow_infinity=False)


def one_bar(features, close):
    """Features whose prices may be those of one bar that closed at `close`."""
    low, high = features.get("low"), features.get("high")
    bar = {"low": low if low is None else min(low, close), "high": high if high is None else max(high, close)}
    return {**features, **bar, "open": close, "close": close}


def reflected(request):
    return asyncio.run(SERVICE.reflect(request, source="heartbeat"))


@given(plan=st.sampled_from(PLANS), role=st.sampled_from(ROLES), text=st.text(max_size=60))
def test_checks_any_text_as_a_rule_never_passes_and_never_raises(plan, role, text):
    result = reflected(changed(right_request(*plan), {f"proposal.{role}": text}))
    assert result.status is not ReflectionStatus.PASS
    assert canonical_json(result.payload())


@given(
    plan=st.sampled_from(PLANS),
    stop=LEVELS,
    target=LEVELS,
    invalidation=CONDITIONS,
    atr=VALUES,
    ema=VALUES,
    close=st.floats(1e-6, 1e9),
)
@example(
    plan=PLANS[0], stop="close", target="ema_20", invalidation="close < 1", atr=None, ema=1.79e308, close=1.0
)
def test_checks_any_levels_on_any_features_never_raise(plan, stop, target, invalidation, atr, ema, close):
    request = right_request(*plan)
    drawn = {"atr_14": atr, "ema_20": ema, "low": close, "rsi_14": 50.0, "close": close}
    features = one_bar(request.snapshot.features | drawn, close)
    result = reflected(
        changed(
            request,
            {
                "proposal.stop": stop[:1000],
                "proposal.target": target[:1000],
                "proposal.invalidation": invalidation[:1000],
                "snapshot.features": features,
                "snapshot.close": close,
            },
        )
    )
    assert result.status is not ReflectionStatus.PASS  # these are not the playbook's rules
    assert canonical_json(result.payload())


@given(plan=st.sampled_from(PLANS), thesis=st.text(max_size=200), rationale=st.text(max_size=200))
def test_checks_any_prose_never_raises(plan, thesis, rationale):
    request = changed(right_request(*plan), {"proposal.thesis": thesis, "proposal.rationale": rationale})
    assert canonical_json(reflected(request).payload())


RIGHT = [plan.request for plan in right_plans("tuned")]
RULE_ROLES = ["setup", "activation", "stop", "target", "invalidation", "trail"]
WORDS = (
    "the sellers rally not no never if would but and who over , . ? : up down long short buy lower high is "
    "has than that with failed absorb trap weak volume falling should were"
)
PROSE = st.lists(st.sampled_from(WORDS.split()) | st.text(max_size=8), max_size=40).map(" ".join)


@given(
    request=st.sampled_from(RIGHT),
    faults=st.lists(st.sampled_from(FAULTS), max_size=3),
    rules=st.dictionaries(st.sampled_from(RULE_ROLES), LEVELS | CONDITIONS | PROSE, max_size=3),
    thesis=PROSE,
    rationale=PROSE,
    close=st.floats(1e-9, 1e12),
    features=st.dictionaries(st.sampled_from(["atr_14", "ema_20", "low", "high", "zscore_20"]), VALUES),
)
def test_checks_each_critic_alone_answers_any_request_with_findings(
    request, faults, rules, thesis, rationale, close, features
):
    texts = {role: text[:1000] for role, text in rules.items()}
    words = {"thesis": thesis[:2000], "rationale": rationale[:4000]}
    for fault in faults:  # as many of them as still find a level to spoil
        request = fault.spoil(request) or request if read_levels_known(request) else request
    close = close if request.snapshot.position is None else request.snapshot.close
    spoiled = changed(
        request,
        {
            "proposal": changed(request.proposal, texts | words),
            "snapshot.close": close,
            "snapshot.features": one_bar({**request.snapshot.features, **features}, close),
        },
    )
    found = [*check_invariants(spoiled)]
    if not found:  # a broken invariant ends it: the dearer critics never see such a request
        levels = read_levels(spoiled)
        found += [seen for critic in COHERENCE_CRITICS for seen in critic(spoiled, levels)]
        found += expectation.check_expectation(spoiled, levels, ReflectionSettings())
        found += memory.check_memory(spoiled, spoiled.memory)
    for finding in found:
        assert canonical_json(finding.payload())


def read_levels_known(request):
    """Whether a fault that asks for levels can be applied once more."""
    if request.proposal.direction not in request.playbook.rules:
        return False
    levels = read_levels(request)
    return levels.risk is not None and levels.reward is not None
