"""The time budget: measured always, binding only for a reader with a deadline, and never silent."""

from schemas.settings import MemorySettings
from services.memory import store
from services.memory.episode_memory import EpisodeMemory
from tests.services.memory.worlds import LATE, query
from tests.services.playbooks.samples import episode, loser
from trading_core.clock import SimulatedClock
from trading_core.tick_guard import TickGuard

HISTORY = [*(episode(k) for k in range(30)), *(loser(100 + k) for k in range(40))]
MS = 1_000_000


class Timer:
    """Monotonic ns that advance by the same step at each reading."""

    def __init__(self, step_ms: float) -> None:
        self.step, self.now = int(step_ms * MS), 0

    def __call__(self) -> int:
        self.now += self.step
        return self.now


def slow(step_ms: float, **settings) -> EpisodeMemory:
    found = EpisodeMemory(MemorySettings(**settings), SimulatedClock(LATE), TickGuard(), Timer(step_ms))
    for item in HISTORY:
        found.add(item)
    return found


def test_reader_without_a_deadline_answers_in_full_however_long_it_takes():
    late, quick = slow(1e6), slow(0.0)
    answers = [memory.reader().retrieve(query(), LATE) for memory in (late, quick)]
    assert answers[0].content_hash == answers[1].content_hash
    assert answers[0].degraded is None
    assert len(answers[0].winners) == 3
    shown = [memory.document() for memory in (late, quick)]
    assert [(document["over_budget"], document["degraded"]) for document in shown] == [(1, 0), (0, 0)]


def test_reader_past_its_deadline_returns_the_base_rates_of_everything_and_says_so():
    found = slow(200.0)
    answer = found.reader(deadline_ms=150.0).retrieve(query(), LATE)
    assert answer.degraded == "over_budget"
    assert (answer.winners, answer.losers, answer.failures) == ((), (), ())
    assert answer.insufficient == ("winners", "losers", "failures")
    rates = answer.base_rates
    assert (rates.population, rates.winners, rates.losers) == (70, 30, 40)
    assert found.document()["degraded"] == found.document()["over_budget"] == 1


def test_reader_within_its_deadline_answers_as_one_without():
    found = slow(50.0)
    answer = found.reader(deadline_ms=150.0).retrieve(query(), LATE)
    assert answer.content_hash == slow(0.0).reader().retrieve(query(), LATE).content_hash
    assert found.document()["degraded"] == 0


def test_deadline_is_looked_at_between_chunks(monkeypatch):
    monkeypatch.setattr(store, "CHUNK", 64)
    assert slow(40.0).reader(deadline_ms=100.0).retrieve(query(), LATE).degraded is None
    assert slow(60.0).reader(deadline_ms=100.0).retrieve(query(), LATE).degraded == "over_budget"


def test_degraded_answer_is_not_paid_for_twice_in_one_evaluation():
    found = slow(200.0)
    reader = found.reader(deadline_ms=150.0)
    assert reader.retrieve(query(), LATE) is reader.retrieve(query(), LATE)
    assert (found.document()["degraded"], found.document()["reused"]) == (1, 1)


def test_budget_is_the_one_of_the_settings():
    counts = [slow(20.0, budget_ms=budget) for budget in (19.0, 21.0)]
    for found in counts:
        found.reader().retrieve(query(), LATE)
        found.reader().base_rates(LATE)
    assert [found.document()["over_budget"] for found in counts] == [2, 0]


def test_document_counts_short_buckets():
    found = slow(0.0)
    reader = found.reader()
    reader.retrieve(query(), LATE)
    reader.retrieve(query(playbook="nobody"), LATE)
    document = found.document()
    assert document["insufficient"] == {"winners": 1, "losers": 1, "failures": 2}
