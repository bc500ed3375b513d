"""The judge of a worker reads evidence from the stored rows of a run that no process trades."""

from schemas.vocabulary import RecommendedAction
from services.store import open_store
from tests.worker.slow_worker.prepared import DAY, START, played, resolved, settings, watched
from worker.slow_worker.slot_runner import RunOfSlots
from worker.slow_worker.wiring import evidence_of_store, threaded_reflection


async def recommending(request, episodes, definitions):
    """A report that recommends something for the playbook that was traded."""
    report = await threaded_reflection(settings())(request, episodes, definitions)
    wanted = {"action": RecommendedAction.RESEARCH_EXPERIMENT, "playbook_id": "mean_reversion"}
    asked = [item.model_copy(update=wanted) for item in report.recommendations]
    return report.model_copy(update={"recommendations": tuple(asked)})


async def judged(tmp_path):
    trades = [resolved(n, START + (n + 1) * DAY // 8) for n in range(60)]
    async with watched(tmp_path, trades, reflect=recommending) as one:
        for day in range(1, 12):
            await one.look_at(START + day * DAY)
        reports = [stored for stored in await one.reports() if stored.verdict is not None]
        reader = evidence_of_store(one.store, RunOfSlots(one.run_id, settings()))
        assert reader is not None
        return reports, [await reader(stored.report) for stored in reports]


def test_verdict_of_a_worker_names_what_was_read_and_the_gate_is_the_reports_own(tmp_path):
    stored, read = played(judged(tmp_path))
    assert stored
    for one, evidence in zip(stored, read, strict=True):
        calls = [call for about in evidence for call in about.gathered.calls]
        gates = [call.reply.content for call in calls if call.method == "gate_status"]
        assert gates
        assert {gate["report_id"] for gate in gates} == {one.report_id}
        found = [item for call in calls for item in (call.reply.content or {}).get("episodes", ())]
        trades = [item["episode_id"] for item in found]
        assert set(trades) & set(one.verdict.evidence_ids)


def test_worker_reads_nothing_where_the_planner_of_the_judge_is_off(tmp_path):
    off = settings().model_copy(update={"planner": settings().planner.model_copy(update={"judge": "off"})})

    async def scenario():
        async with await open_store(f"sqlite:///{tmp_path}/store.db", create=True) as store:
            return evidence_of_store(store, RunOfSlots("r0001", off))

    assert played(scenario()) is None
