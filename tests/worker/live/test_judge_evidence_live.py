"""What the judge of a live run reads is the same from the start, a savepoint, and when a report waited."""

import asyncio
import json
from functools import cache

from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from tests.worker.live.test_paper_savepoints import PLAYBOOKS
from tests.worker.live.test_savepoint_sessions import go_on
from tests.worker.live.test_service_states import MARKET, ROWS
from tests.worker.test_judge_with_a_model import Scripted
from tests.worker.test_judge_with_a_model import settings as judging_settings
from worker.live.checkpoints import ResumePoint, SavepointWriter, restore
from worker.live.reports import apply_report, judge
from worker.live.stepper import LiveStepper
from worker.models import Models, Overrides

EVIDENCE = ("evidence_plan", "evidence_call")
ASKED_AT, HEARD_AT, END = 520, 522, 555
# A judge that drops what is recommended, so that nothing is on trial and the next report recommends it again.
JUDGED = Models(judge=Scripted({"reasons": [], "comment": None, "keep": []}))


def stepper() -> LiveStepper:
    journal = JournalWriter(MemorySink(), 10**9)
    return LiveStepper(
        judging_settings(), MARKET, journal,
        lock_step=True, ask=lambda evaluation: None, definitions=PLAYBOOKS, own=Overrides(models=JUDGED),
    )  # fmt: skip


def split(one: LiveStepper) -> LiveStepper:
    """A stepper that goes on from a savepoint of another."""
    point, _ = SavepointWriter("this program").write(one.session, ResumePoint(one.rows, dict(one.blocked)))
    again = stepper()
    found = restore(point, MARKET, judging_settings(), again.journal, PLAYBOOKS, Overrides(JUDGED))
    again.resume(found.session, found.resume_point.rows, found.resume_point.blocked)
    return again


def rows_of(one: LiveStepper) -> list[tuple[str, str]]:
    asyncio.run(one.journal.flush())
    journal: JournalWriter = one.journal
    sink = journal._sink
    assert isinstance(sink, MemorySink)
    return [(row.kind, row.payload) for row in sink.rows if row.kind in (*EVIDENCE, "report_arrived")]


def heard(one: LiveStepper, *, at_once: bool) -> LiveStepper:
    """A run that hears a report some rows after it was made, judged when it came or when it is heard."""
    go_on(one, 0, ASKED_AT, ROWS)
    request, report = asyncio.run(one.session.slow_loop.reflect_now(ASKED_AT - 1))
    assert any(item.action != "hold" for item in report.recommendations)
    seen = one.journal.events
    judged = asyncio.run(judge(one.session, request, report)) if at_once else None
    go_on(one, ASKED_AT, HEARD_AT, ROWS)
    if judged is None:
        judged = asyncio.run(judge(one.session, request, report, seen=seen))
    apply_report(one.session, judged)
    go_on(one, HEARD_AT, END, ROWS)
    return one


@cache
def unbroken() -> LiveStepper:
    return heard(stepper(), at_once=True)


def test_report_that_waited_is_replayed_with_the_rows_that_its_judge_could_read() -> None:
    again = heard(stepper(), at_once=False)
    assert rows_of(again) == rows_of(unbroken())
    assert again.journal.head_hash == unbroken().journal.head_hash
    arrived = [json.loads(payload) for kind, payload in rows_of(again) if kind == "report_arrived"]
    assert arrived[0].keys() == {"report_id", "slot", "seen"}
    kinds = [kind for kind, _ in rows_of(again)]
    assert kinds[kinds.index("report_arrived") + 1] == "evidence_plan"


def test_rows_behind_a_savepoint_are_those_of_the_run_from_its_start() -> None:
    one = stepper()
    go_on(one, 0, ASKED_AT, ROWS)
    again = split(one)
    whole, after = one.session.kept, again.session.kept
    assert whole is not None
    assert after is not None
    assert len(whole.rows) > 50
    assert after.rows == whole.rows
    read = [asyncio.run(_read(each)) for each in (one, again)]
    assert read[0] == read[1]
    assert read[0]


async def _read(one: LiveStepper) -> list[tuple[str, str]]:
    _, report = await one.session.slow_loop.reflect_now(ASKED_AT - 1)
    evidence = await one.session.slow_loop.evidence(report)
    return [(call.method, call.reply.text) for shown in evidence for call in shown.gathered.calls]
