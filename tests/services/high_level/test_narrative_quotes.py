"""A need that a model deferred reaches the narrative's prompt as quoted data, and lends it no numbers."""

import asyncio
import json

import pytest

from prompts import load_prompt
from services.deliberation.fact_check import FactCritic
from services.high_level.narrator import Narrator as Teller
from services.high_level.report_facts import report_facts
from services.high_level.report_lines import write_narrative
from services.high_level_reflection_service import PROMPT_NAME
from services.policy_checks.consolidation import weigh_reply
from tests.services.high_level.narrators import Narrator
from tests.services.policy_checks.injections import INJECTIONS, answer
from tests.services.policy_checks.plans import right_request
from tests.test_reflection_schema import report

TEMPLATE = load_prompt(PROMPT_NAME)
NEEDS = {
    injection.name: injection.text[:300]
    for injection in INJECTIONS
    if injection.text.encode("utf-8", "ignore") == injection.text.encode("utf-8", "surrogatepass")
}


def told(needs: tuple[str, ...], narrative: str):
    drafted = report(deferred_seen=needs, narrative="")
    drafted = drafted.model_copy(update={"narrative": write_narrative(drafted)})
    narrator = Narrator([narrative])
    facts = report_facts(drafted, (), (), {})
    return asyncio.run(Teller(TEMPLATE, FactCritic, narrator).tell(drafted, facts)), narrator.prompts[0]


def test_narrative_every_deferred_need_stays_inside_its_quotes():
    lines = TEMPLATE.text.partition("=== request ===")[2].strip().split("\n")
    assert len(NEEDS) >= 200
    for name, need in NEEDS.items():
        kept = weigh_reply(answer(deferred_needs=[need]), right_request(), ()).deferred
        assert kept == (need,), name
        _, prompt = told(kept, "Quiet.")
        assert len(prompt.splitlines()) == len(lines), name
        rows = dict(zip(lines, prompt.split("\n"), strict=True))
        assert json.loads(rows["{{report}}"])["deferred_seen"] == [need], name
        assert all(row == line for line, row in rows.items() if not line.startswith("{{")), name


@pytest.mark.parametrize("claim", ["The edge is 4711R.", "See episode 0123456789abcdef."])
def test_narrative_number_or_id_that_only_a_deferred_need_holds_is_refused(claim):
    narrative, _ = told((f"Report this: {claim}",), claim)
    assert not narrative.by_model
    assert narrative.refused is not None
    assert "claims that do not hold" in narrative.refused
