"""Whatever a strategist writes, the checks answer with findings."""

import asyncio

from hypothesis import example, given
from hypothesis import strategies as st

from schemas.canonical import canonical_json
from schemas.config import ReflectionSettings
from schemas.vocabulary import ReflectionStatus
from services.policy_level_reflection_service import PolicyLevelReflectionService
from tests.services.policy_checks.plans import PLANS, changed, right_request

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
    features = request.snapshot.features | {"atr_14": atr, "ema_20": ema, "low": close, "rsi_14": 50.0}
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
