"""How each setting of the language models is seen to act: one line for one setting."""

from tests.worker.settings_walk.models_seen import (
    BUDGETS,
    FULL,
    JUDGING,
    PROPOSING,
    asked_in_vain,
    judged,
    kept,
    paced,
    read_requests,
    temperatures,
    texts_admitted,
    turned_away,
)
from tests.worker.settings_walk.walking import Entry

PRICE = {"model": "claude-haiku-5-5", "input_usd": 0.2, "output_usd": 0.5}
PRICED = {**FULL, "llm.prices": [PRICE]}
OTHER = "anthropic/other"
OWN_SERVER = {
    "reflection.mode": "full",
    "llm.model": "openai/gpt-6",
    "llm.base_url": "http://127.0.0.1:9",
    "deliberation.review.enabled": True,
}
RECORDED = {**FULL, "runtime.llm": "record", "runtime.cassette": "calls.jsonl"}

MODELS: dict[str, Entry] = {
    "policy_loop.strategist": Entry("model", read_requests, {"llm.model": "anthropic/claude-haiku-5-5"}),
    "deliberation.critique_temperature": Entry(0.1, temperatures, OWN_SERVER),
    "deliberation.writing_temperature": Entry(0.1, temperatures, OWN_SERVER),
    "judge.replan": Entry("model", judged, {"llm.model": "anthropic/claude-haiku-5-5"}),
    "llm.model": Entry("anthropic/claude-haiku-5-5", read_requests, {"reflection.mode": "full", **BUDGETS}),
    "llm.base_url": Entry("http://127.0.0.1:9/v1", read_requests, FULL),
    "llm.accept_models": Entry(["other"], read_requests, FULL),
    "llm.structured_output": Entry(False, read_requests, FULL),
    "llm.anonymise": Entry(True, read_requests, PROPOSING),
    "llm.fast": Entry(OTHER, read_requests, FULL),
    "llm.slow": Entry(OTHER, judged, JUDGING),
    "llm.strategist": Entry(OTHER, read_requests, PROPOSING),
    "llm.judge": Entry(OTHER, judged, JUDGING),
    "llm.strategist_deadline_ms": Entry(60_000.0, read_requests, PROPOSING),
    "reflection.model_deadline_ms": Entry(60_000.0, read_requests, FULL),
    "llm.prices": Entry([PRICE], read_requests, FULL),
    "llm.prices[].model": Entry([PRICE | {"model": "other"}], read_requests, PRICED),
    "llm.prices[].input_usd": Entry([PRICE | {"input_usd": 3.0}], read_requests, PRICED),
    "llm.prices[].output_usd": Entry([PRICE | {"output_usd": 3.0}], read_requests, PRICED),
    "llm.unknown_price": Entry("zero", read_requests, {**FULL, "llm.model": "openai/gpt-6-sol"}),
    "llm.effort": Entry("high", read_requests, FULL),
    "llm.thought_tokens": Entry(4_000, read_requests, FULL),
    "llm.knowledge_cutoff": Entry("2000-01-01", read_requests, FULL),
    "llm.quote_per_usd": Entry(2.0, read_requests, FULL),
    **{f"llm.{scope}.calls": Entry(0, read_requests, FULL) for scope in ("per_event", "per_day", "per_run")},
    **{
        f"llm.{scope}.tokens": Entry(10, read_requests, FULL) for scope in ("per_event", "per_day", "per_run")
    },
    **{f"llm.{scope}.usd": Entry(1e-9, read_requests, FULL) for scope in ("per_event", "per_day", "per_run")},
    **{
        f"llm.{scope}.seconds": Entry(0.0, read_requests, FULL)
        for scope in ("per_event", "per_day", "per_run")
    },
    "llm.decision_share": Entry(0.2, texts_admitted, {**FULL, "llm.per_run.calls": 10}),
    "llm.attempts": Entry(4, asked_in_vain, FULL),
    "llm.first_wait_ms": Entry(200.0, asked_in_vain, FULL),
    "llm.at_once": Entry(2, paced, FULL),
    "llm.per_minute": Entry(3, paced, FULL),
    "llm.breaker_failures": Entry(2, asked_in_vain, FULL),
    "llm.breaker_pause": Entry(3, asked_in_vain, FULL),
    "llm.on_lost": Entry("rules", turned_away, FULL),
    "llm.stall_ms": Entry(777.0, judged, JUDGING),
    "runtime.llm": Entry("replay", kept, RECORDED),
    "runtime.cassette": Entry("others.jsonl", kept, RECORDED),
}
