"""The journal rows of a refined text: what they hold, what is left to telemetry, and none for a skip."""

import asyncio
import json

from schemas.canonical import canonical_json, content_id
from schemas.settings.deliberation import PassSettings, QualitySettings
from services.deliberation.budget import Budget
from services.deliberation.claim_critics import claim_critics
from services.deliberation.model_revisers import Corrector
from services.deliberation.presets.quality import run_quality
from services.deliberation.presets.reflection_pass import run_pass
from services.deliberation.refine import Task
from services.deliberation.rows import deliberation_rows
from tests.services.deliberation.claim_texts import BETTER, DRAFT, LIE, MEAN, draft_of, writer
from tests.services.deliberation.scripted import Ticks, critique, improved, scored, section, texts


def passed(step_ms=0.0, text=DRAFT):
    models, _ = texts(
        critique=critique("NEEDS CORRECTION", 0.9, "unclear"), correction={"sections": [BETTER]}
    )
    budget, claims = Budget(0, 2, timer=Ticks(step_ms)), writer()
    work = run_pass(
        Task(""), text, PassSettings(), budget, rules=claim_critics(claims), models=models,
        reviser=Corrector(models, claims, 512),
    )  # fmt: skip
    return asyncio.run(work)


def rows_of(done, **how):
    return list(deliberation_rows(done, "rationale", **how))


def test_text_has_a_row_and_one_for_each_of_its_events():
    rows = rows_of(passed(), proposal_hash="p")
    assert [kind for kind, _, _ in rows] == ["deliberation", "reflection_critique", "reflection_correction"]
    assert len({payload["deliberation_id"] for _, payload, _ in rows}) == 1
    first = rows[0][1]
    assert (first["report_id"], first["proposal_hash"], first["text"]) == (None, "p", "rationale")
    assert (first["preset"], first["status"], first["stop_reason"]) == ("pass", "accepted", "accepted")
    assert first["usage"]["calls"] == 2


def test_row_names_texts_by_their_hash_and_holds_none():
    first = rows_of(passed())[0][1]
    assert first["final_hash"] == first["candidates"][1]["hash"]
    assert first["candidates"][1]["parent"] == 0
    assert first["changed"] is True
    assert "mean R" not in json.dumps([payload for _, payload, _ in rows_of(passed())])


def test_findings_are_told_by_their_codes():
    lie = draft_of(section(MEAN, LIE))
    done = asyncio.run(run_quality(Task(""), lie, QualitySettings(), Budget(0, 0), facts=writer()))
    first = rows_of(done, report_id="r")[0][1]
    assert first["critiques"][0]["findings"] == ["claim_refused"]
    assert (first["report_id"], first["verified_gain"]) == ("r", done.verified_gain)


def test_times_are_telemetry_and_change_no_row():
    slow, quick = rows_of(passed(9.0)), rows_of(passed())
    assert [payload for _, payload, _ in slow] == [payload for _, payload, _ in quick]
    assert {name for _, _, telemetry in slow for name in telemetry} == {"elapsed_ms", "error"}
    assert slow[0][2]["elapsed_ms"] > 0.0
    assert quick[0][2]["elapsed_ms"] == 0.0
    assert "elapsed" not in canonical_json([payload for _, payload, _ in slow])


def test_id_is_that_of_the_payload():
    first = rows_of(passed())[0][1]
    payload = {name: value for name, value in first.items() if name != "deliberation_id"}
    assert first["deliberation_id"] == content_id(payload)
    assert rows_of(passed(), report_id="r")[0][1]["deliberation_id"] != first["deliberation_id"]


def test_skipped_text_has_no_row():
    assert rows_of(passed(text="Too short.")) == []


def test_failure_stands_in_the_row():
    models, _ = texts(quality="prose", improvement=improved(BETTER))
    done = asyncio.run(run_quality(Task(""), DRAFT, QualitySettings(), Budget(0, 9), models=models))
    _, first, measured = rows_of(done)[0]
    assert (first["degraded_from"], first["changed"]) == ("full: reply_malformed", False)
    assert measured["error"].startswith("the reply is not one JSON object")


def test_own_score_and_what_was_verified_are_apart():
    models, _ = texts(quality=[scored(60), scored(90)], improvement=improved(BETTER))
    work = run_quality(Task(""), DRAFT, QualitySettings(), Budget(0, 9), models=models, facts=writer())
    first = rows_of(asyncio.run(work))[0][1]
    assert (first["self_reported_gain"], first["verified_gain"]) == (0.3, 0)
