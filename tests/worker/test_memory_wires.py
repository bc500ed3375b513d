"""Memory in a running session: what it is asked, what it may reuse, and what the run says about it."""

import re
from collections import Counter
from itertools import groupby
from typing import Any

import pytest

from schemas.no_learn import NoLearnZone
from schemas.playbook import PlaybookVersion
from schemas.settings import EnvelopeSettings, MemorySettings, Settings
from schemas.vocabulary import VersionState
from services.playbooks.measures import alter, with_parameter
from services.policy_checks.bases import SnapshotCheck
from services.ports import MemoryQuery
from tests.services.playbooks.samples import episode
from tests.worker.shared_runs import Run, embedded_bars, run_on, slice_run
from tests.worker.test_session_wires import session
from worker.pages.text_parts import text_of
from worker.runs.run_text import summary_parts

Question = tuple[str, str]


def retrievals(run: Run) -> list[tuple[str, Question, dict[str, Any]]]:
    """Snapshot, question and answer of every retrieval or reuse, in order."""
    proposals = {plan["proposal_hash"]: plan["proposal"] for plan in run.of("policy_proposal")}
    found = []
    for reflection in run.of("policy_reflection"):
        memory, proposal = reflection["result"]["memory"], proposals[reflection["proposal_hash"]]
        if memory is not None:
            question = (proposal["playbook_id"], proposal["direction"])
            found.append((reflection["snapshot_hash"], question, memory))
    return found


def read_requests(run: Run) -> list[list[Question]]:
    """What each evaluation asked, in order."""
    evaluations = groupby(retrievals(run), key=lambda retrieval: retrieval[0])
    return [[question for _, question, _ in group] for _, group in evaluations]


def expected(evaluations: list[list[Question]]) -> tuple[int, int, Counter[str]]:
    """Retrievals, reuses and re-queries by reason."""
    retrieved, reused = 0, 0
    requeried: Counter[str] = Counter()
    for questions in evaluations:
        seen: list[Question] = []
        for question in questions:
            if question in seen:
                reused += 1
                continue
            if seen:
                requeried["playbook" if question[0] != seen[-1][0] else "direction"] += 1
            seen.append(question)
            retrieved += 1
    return retrieved, reused, requeried


def test_memory_of_a_run_reads_reuses_and_requeries_what_its_journal_shows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        SnapshotCheck, "findings", lambda *questions: ()
    )  # every base is offered, and sent back
    run = run_on(embedded_bars("2003-01-01", "2005-10-31"))
    memory = run.document["memory"]
    retrieved, reused, requeried = expected(read_requests(run))
    assert memory["reads"] == run.document["policy_loop"]["evaluations"] + retrieved
    assert memory["reused"] == reused > 0
    assert {name: count for name, count in memory["requeried"].items() if count} == requeried
    assert requeried["playbook"] > 0


def test_memory_of_a_run_counts_the_short_buckets_of_its_retrievals() -> None:
    run = slice_run()
    answers = {(snapshot, question): memory for snapshot, question, memory in retrievals(run)}
    short = Counter(bucket for memory in answers.values() for bucket in memory["insufficient"])
    assert run.document["memory"]["insufficient"] == short


def test_memory_of_a_backtest_is_measured_by_its_budget_and_never_cut_by_it() -> None:
    impatient = Settings(memory=MemorySettings(budget_ms=1e-9))
    run = run_on(embedded_bars("2003-01-01", "2004-06-30"), impatient)
    memory = run.document["memory"]
    assert memory["over_budget"] == memory["reads"] > 0
    assert memory["degraded"] == 0
    summaries = [reflection["result"]["memory"] for reflection in run.of("policy_reflection")]
    assert {summary["degraded"] for summary in summaries if summary is not None} == {None}
    assert any(summary["winners"] for summary in summaries if summary is not None)


def test_memory_of_a_run_says_how_many_episodes_it_did_not_take() -> None:
    history = NoLearnZone(start=0, end=1_072_915_200_000_000_000, reason="all of 2003")
    envelope = EnvelopeSettings(no_learn_zones=(history,))
    run = run_on(embedded_bars("2003-01-01", "2004-06-30"), Settings(envelope=envelope))
    memory, episodes = run.document["memory"], run.of("episode")
    ignored = sum(row["episode"]["no_learn"] for row in episodes)
    assert memory["ignored"] == {"no_learn": ignored, "shadow": 0, "no_regime": 0}
    assert memory["episodes"] + ignored == len(episodes)


def printed(**memory: Any) -> str:
    document = slice_run().document
    return text_of(summary_parts(document | {"memory": document["memory"] | memory}, full=True))


def test_summary_shows_reuse_always_and_a_degraded_memory_when_there_was_one() -> None:
    quiet = printed(over_budget=0, degraded=0, reused=7)
    assert re.search(r"^ +reused +7 *$", quiet, re.M)
    assert "memory degraded" not in quiet
    assert re.search(r"memory degraded +2 reads without cases", printed(over_budget=3, degraded=2))


def test_promotion_leaves_cases_and_expectations_of_the_old_rules_behind() -> None:
    """What the old value lost must not hold back the new one; a smaller risk changes no outcome."""
    made = session()
    definition = made.books.lifecycle.active("mean_reversion")
    name, parameter = next(iter(sorted(definition.parameters.items())))
    other = next(value for value in parameter.grid if value != parameter.value)
    changed = alter(with_parameter(definition, name, other), version=2)
    smaller = alter(definition, version=3, risk_fraction=0.001)
    for entry in (changed, smaller):
        made.books.lifecycle._registry.record(
            PlaybookVersion(
                definition=entry, state=VersionState.CANDIDATE, since=made.clock.now, reason="tried"
            )
        )
    known = made.clock.now
    lost = episode(
        1, playbook_id=definition.id, playbook_hash=definition.content_hash, direction="long", r=-1.0
    )
    made.experience.memory.add(lost.model_copy(update={"known_at": known}))
    made.experience.expectations.record(lost.model_copy(update={"known_at": known}))
    reader, expected = made.experience.memory.reader(), made.experience.expectations.reader()
    for version, n in ((definition, 1), (changed, 0), (smaller, 1)):
        request = MemoryQuery("S", definition.id, "long", lost.fingerprint, version.content_hash)
        assert reader.retrieve(request, known).base_rates.population == n
        assert expected.summary(version, known).n == n
