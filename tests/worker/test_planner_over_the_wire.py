"""A model plans as the settings have it: asked over the wire, recorded, and played without a key."""

import asyncio
import json
import os

import pytest

from agents.evidence_planner import ModelPlanner
from agents.planning.plan_reply import FORM, PROMPT
from schemas.errors import CassetteMiss, ConfigError
from schemas.settings import Settings
from services.context import RunContext
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.ports import EvidenceQuestion
from tests.agents.language_models.test_native_tools import CALLING, CALLS, QUOTED
from tests.agents.language_models.wire_formats import FORMATS, saying
from tests.agents.language_models.wire_server import READ
from tests.agents.planning.planned import SHOWN
from tests.worker.wire import wire
from trading_core.clock import SimulatedClock
from trading_core.tick_guard import TickGuard
from worker.models import assemble_models, check_models

QUESTION = EvidenceQuestion("Why did squeeze_breakout lose?", {"playbooks": ["squeeze_breakout"]})
NAMED = [
    {"client": "thinktwice", "method": name.removeprefix("thinktwice__"), "params": given}
    for name, given in CALLS
]
IN_WORDS = f"<reasoning>Episodes, then the gate.</reasoning>{json.dumps({'confidence': 0.8, 'tools': NAMED})}"
EVERY = pytest.mark.parametrize("provider", sorted(FORMATS))


def settings(provider, llm, cassette, **planner):
    model = "claude-test"
    return Settings.model_validate(
        {
            "llm": {
                "model": f"{provider}/{model}", "attempts": 1,
                "prices": [{"model": model, "input_usd": 1.0, "output_usd": 5.0}],
            },
            "judge": {"replan": "model"},
            "planner": planner,
            "runtime": {"llm": llm, "cassette": str(cassette)},
        }
    )  # fmt: skip


def planned(shown):
    """The plan, and what it cost in US dollars."""

    async def scenario():
        journal, clock = JournalWriter(MemorySink()), SimulatedClock()
        context = RunContext(shown, clock, journal, TickGuard())
        models = assemble_models(context, os.environ, texts={PROMPT: shown.llm.model})
        try:
            planner = ModelPlanner(models.accounted.texts[PROMPT], shown.planner, max_tokens=500)
            return await planner.plan(QUESTION, SHOWN), models.account.ledger.run.usd
        finally:
            await models.live.close()

    return asyncio.run(scenario())


@EVERY
@pytest.mark.parametrize("native", [True, False])
def test_plan_is_asked_for_recorded_and_played_without_a_key(provider, native, tmp_path, monkeypatch):
    handler = CALLING[provider]() if native else saying(FORMATS[provider], IN_WORDS)
    path = tmp_path / "plans.jsonl"
    with wire(monkeypatch, handler, provider=provider) as server:
        shown = settings(provider, "record", path, native_tools=native)
        check_models(shown, os.environ)
        plan, usd = planned(shown)
    ((_, body),) = server.requests
    assert ("tools" in body, FORMATS[provider].form_of(body)) == (
        (True, None) if native else (False, FORM.schema)
    )
    assert [(call.method, dict(call.params)) for call in plan.tools] == [
        (entry["method"], entry["params"]) for entry in NAMED
    ]
    assert (plan.confidence, plan.reasoning, plan.failure) == (0.8, "Episodes, then the gate.", None)
    assert usd == pytest.approx((READ * 1.0 + 7 * 5.0) / 1e6)
    assert planned(settings(provider, "replay", path, native_tools=native)) == (plan, usd)
    with pytest.raises(CassetteMiss):
        planned(settings(provider, "replay", path, native_tools=not native))


def test_recorded_calls_that_were_changed_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "plans.jsonl"
    with wire(monkeypatch, CALLING["anthropic"]()):
        planned(settings("anthropic", "record", path, native_tools=True))
    assert QUOTED.split(">")[1][:8] in path.read_text("utf-8")
    path.write_text(path.read_text("utf-8").replace("gate", "reports"), "utf-8")
    with pytest.raises(ConfigError, match="changed after it was recorded"):
        planned(settings("anthropic", "replay", path, native_tools=True))
