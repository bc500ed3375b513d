"""`thinktwice paper` killed by the system at random bars, on both databases: nobody can tell afterwards."""

import signal

from tests.worker.live.real_paper import job, killing, left, undisturbed, written

BARS, KILLS = 300, 3


def test_paper_process_killed_at_random_bars_ends_with_the_undisturbed_head(tmp_path, postgres_url) -> None:
    data = written(tmp_path, BARS, seed=5)
    addresses = [f"sqlite:///{tmp_path}/paper.db", postgres_url]
    jobs = [
        job(data, address, kills=KILLS, seed=seed, gap_rows=BARS // (2 * KILLS))
        for seed, address in enumerate(addresses)
    ]
    calm, *disturbed = killing(undisturbed(data), *jobs)
    head = calm["document"]["journal"]["head_hash"]
    for payload, address in zip(disturbed, addresses, strict=True):
        assert (payload["code"], payload["kills"]) == (0, KILLS), payload["said"]
        assert {finding["code"] for finding in payload["starts"][:-1]} == {-signal.SIGKILL}
        assert any(item["rows"] for item in payload["starts"]), "nothing was recovered: this says nothing"
        assert all(item["played"] <= item["rows"] for item in payload["starts"])
        found = left(address)
        assert (found.head, found.bars) == (head, BARS)
        assert (found.lost, found.extra, found.doubled) == (0, 0, 0)
        assert found.orders > 0
