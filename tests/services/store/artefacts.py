"""Small requests, reports and verdicts, as the slow loop stores them."""

from schemas.canonical import ns_to_datetime
from schemas.invocation import ReflectionInvocationMeta
from schemas.judge import ReplanVerdict
from schemas.slow_reflection import HighLevelReflectionReport, HighLevelReflectionRequest
from schemas.vocabulary import InvocationOutcome, RecommendedAction
from services.store.claims import Claim, SlotKey

WEEK = 7 * 86_400 * 10**9
MONDAY = 4 * 86_400 * 10**9 + 1_500 * WEEK
JOB = "slow_loop"


def key(run_id, slot=MONDAY):
    return SlotKey(run_id, JOB, slot)


def request(slot=MONDAY, **changes):
    values = {
        "slot": slot,
        "known_at": slot,
        "window_start": ns_to_datetime(slot - WEEK),
        "window_end": ns_to_datetime(slot),
        "timeframe": "1d",
        "episode_ids": ("e1", "e2"),
        "new_episodes": 2,
    }
    return HighLevelReflectionRequest(**values | changes)


def report(question, **changes):
    values = {
        "window_start": question.window_start,
        "window_end": question.window_end,
        "n_episodes": 2,
        "insufficient_sample": True,
        "narrative": "two trades, no lesson",
        "prompt_hash": "p" * 64,
        "request_hash": question.content_hash,
        "known_at": question.known_at,
        "meta": ReflectionInvocationMeta(
            cadence="high_level", source=f"slot {question.slot}", outcome=InvocationOutcome.RAN
        ),
        "latency_ms": 7,
    }
    return HighLevelReflectionReport(**values | changes)


def verdict(shown, **changes):
    values = {
        "decision": RecommendedAction.HOLD,
        "report_id": shown.content_hash[:16],
        "reason": "nothing to change",
        "known_at": shown.known_at,
    }
    return ReplanVerdict(**values | changes)


def claim(run_id, question):
    """A claim as its maker holds it."""
    return Claim(
        key(run_id, question.slot),
        "claimed",
        "a",
        1,
        1,
        0,
        None,
        {},
        question.content_hash,
        question.canonical_text(),
    )


async def claimed(store, lease, run_id, question):
    """Claim the slot of a request."""
    slot = key(run_id, question.slot)
    assert await store.claims.claim(lease, slot, question.content_hash, question.canonical_text(), {})
    return await store.claims.get(slot)


async def reported(store, lease, run_id, slot=MONDAY):
    """A report of a slot, waiting in the inbox."""
    question = request(slot)
    shown = report(question)
    assert await store.reports.write(lease, await claimed(store, lease, run_id, question), shown)
    return shown
