"""A text of one's own in a preset: what a run knows is read before any deadline begins."""

import asyncio

from schemas.settings import Settings
from services.evidence.run_facts import RunFacts
from tests.services.deliberation.recorded import recorded
from tests.worker.live.virtual_time import run_virtually
from worker.studies.deliberated import TextRequest, deliberate_all

TEXT = "A quiet week. All trades of channel_breakout won."


def test_facts_that_take_longer_than_a_text_may_are_read_all_the_same():
    told = Settings().deliberation
    quality = told.quality.model_copy(update={"deadline_ms": 1.0})
    settings = Settings(deliberation=told.model_copy(update={"quality": quality}))

    async def slow() -> RunFacts:
        await asyncio.sleep(600)
        return recorded()

    [done] = run_virtually(deliberate_all([TextRequest(TEXT, "quality", facts=slow)], settings, {}))
    assert done.final == "A quiet week."
    assert done.degraded_from is None
