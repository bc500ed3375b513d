"""Workers on one PostgreSQL: the leader freezes, another takes over in time, and nothing is run twice."""

from tests.worker.slow_worker.contests import DAYS, contest

LEASE_MS = 1_000


def test_frozen_leader_is_replaced_and_its_late_report_is_refused(tmp_path, postgres_url) -> None:
    found = contest(postgres_url, tmp_path / "told", 2, "SIGSTOP", LEASE_MS)
    assert found.codes == [0, 0]
    assert found.slots == list(range(1, DAYS + 1)), "each slot once"
    assert found.reports == DAYS
    assert found.refused == 1
    assert found.leaders == 2
    assert found.takeover_s > 0.5 * LEASE_MS / 1e3, "nobody takes a lease that is held"
