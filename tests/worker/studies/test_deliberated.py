"""A stranger's text: its claims are read by a model or by the small reader, held by code and written anew."""

import asyncio
from typing import Any

import pytest
from pydantic import TypeAdapter

from schemas.claims import Claim
from schemas.settings import Settings
from services.claims.sections import describe_claim
from services.deliberation.budget import Budget
from services.deliberation.extraction import check_read, extract_claims, read_by_rules
from services.evidence.run_facts import RunFacts
from tests.services.deliberation.claim_texts import LIE, MEAN
from tests.services.deliberation.recorded import at_last_report, whole
from tests.services.deliberation.scripted import critique, improved, reviewed, scored, section, texts
from tests.worker.live.virtual_time import run_virtually
from worker.cli.printing import print_document
from worker.cli.texts import checked_parts
from worker.studies.deliberated import Preset, TextRequest, deliberate_all, refine_one

TEXT = "A quiet week. The number of trades of channel_breakout was 9999."


def test_facts_that_take_longer_than_a_text_may_are_read_all_the_same():
    shown = Settings().deliberation
    quality = shown.quality.model_copy(update={"deadline_ms": 1.0, "mode": "critique_only"})
    settings = Settings(deliberation=shown.model_copy(update={"quality": quality}))

    async def slow() -> RunFacts:
        await asyncio.sleep(600)
        return whole()

    [text] = run_virtually(deliberate_all([TextRequest(TEXT, "quality")], settings, {}, slow))
    assert text.done.final == "text:\n- The number of trades of channel_breakout was 153."
    assert text.done.degraded_from is None
    assert text.not_read == ("A quiet week.",)


QUOTED = "channel_breakout did well, all won on squeeze_breakout. It rained."
READ = {
    "claims": [
        {"quote": "channel_breakout did well", "claim": MEAN},
        {"quote": "all won on squeeze_breakout", "claim": LIE},
        {"quote": "words of its own", "claim": MEAN},
    ]
}


def test_claims_that_a_model_reads_are_held_by_code_and_need_their_words():
    models, _ = texts(claims=READ)
    facts = at_last_report()
    read = asyncio.run(extract_claims(QUOTED, facts, models, Budget(0, 1)))
    checked = check_read(QUOTED, read, facts)
    assert [claim.verdict for claim in checked.claims] == ["verified", "contradicted"]
    assert [QUOTED[claim.start : claim.end] for claim in checked.claims] == [
        item["quote"] for item in READ["claims"][:2]
    ]
    assert (read.by_model, read.unplaced, read.not_read) == (True, 1, ("It rained.",))


def test_table_of_what_a_model_read_has_each_claim_in_the_words_of_code(capsys: pytest.CaptureFixture[str]):
    facts, text = at_last_report(), "AAPL lost ninety trades."
    trades = {"kind": "value", "measure": "trades", "of": {"playbook": "channel_breakout"}}
    models, _ = texts(claims={"claims": [{"quote": "AAPL lost ninety trades", "claim": trades}]})
    read = asyncio.run(extract_claims(text, facts, models, Budget(0, 1)))
    print_document({}, False, lambda _: checked_parts("r0001", check_read(text, read, facts), read))
    shown = " ".join(capsys.readouterr().out.split())
    assert "ok" in shown
    assert "The number of trades" in shown
    ruled = read_by_rules("The number of trades of channel_breakout was 9999.", facts)
    print_document({}, False, lambda _: checked_parts("r0001", check_read("", ruled, facts), ruled))
    assert "held as" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        ({"kind": "value", "measure": "mean_r", "of": {"symbol": "AAPL"}, "stated": "0.9"},
         "The mean R of AAPL was 0.9R."),
        ({"kind": "share", "part": {"outcome": "won"}, "stated": "90"}, "90 of ? trades won: ?."),
        ({"kind": "share", "part": {"outcome": "won"}, "stated": "9%"}, "? of ? trades won: 9%."),
        ({"kind": "compare", "measure": "mean_r", "left": {"symbol": "A"}, "relation": "more",
          "right": {"symbol": "B"}}, "The mean R of A was higher than that of B: ? and ?."),
        ({"kind": "sign", "measure": "pnl", "sign": "zero"}, "The profit after costs was zero: ?."),
        ({"kind": "advice", "action": "hold"}, "The report recommends hold."),
    ],
)  # fmt: skip
def test_claim_in_words_has_the_figures_that_were_stated_and_no_other(claim: dict[str, Any], words: str):
    assert describe_claim(TypeAdapter[Any](Claim).validate_python(claim)).endswith(words)


@pytest.mark.parametrize("reply", ["no claims", "{}", {"claims": [{"quote": "", "claim": MEAN}]}])
def test_model_that_reads_nothing_leaves_the_small_reader_and_says_so(reply: object):
    models, _ = texts(claims=reply)
    text = "The number of trades of channel_breakout was 9999."
    read = asyncio.run(extract_claims(text, at_last_report(), models, Budget(0, 1)))
    assert (read.by_model, len(read.claims)) == (False, 1)
    assert str(read.failed).startswith("reply_malformed")


REPLIES = {
    "critique": critique("NEEDS CORRECTION"),
    "correction": {"sections": [section(MEAN, LIE)]},
    "quality": scored(90),
    "improvement": improved(section(MEAN, LIE)),
    "review": reviewed(0.9),
    "outline": {"chunks": ["window", "drift", "grades"]},
    "section": {"reasoning": "", "claims": [MEAN, LIE], "comment": None},
}


@pytest.mark.parametrize("preset", ["pass", "quality", "review", "chunked"])
def test_improved_text_is_sections_of_claims_that_hold_in_every_preset(preset: Preset):
    models, _ = texts(claims=READ, **REPLIES)
    request = TextRequest(QUOTED, preset)
    text = asyncio.run(refine_one(request, Settings().deliberation, models, at_last_report()))
    assert "squeeze_breakout" not in text.done.final
    assert "The mean R of channel_breakout was +0.17R over 141 trades." in text.done.final
    assert text.not_read == ("It rained.",)
