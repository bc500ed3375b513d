"""PostgreSQL is restarted while a worker holds a report: it is written once, and never under an old epoch."""

import asyncio
import os

import pytest

from tests.postgres.binaries import OPT_OUT, SERVER, find
from tests.postgres.server import troubled
from tests.worker.slow_worker.restarts import alone, replaced


@pytest.fixture(scope="module")
def troubled_server():
    if os.environ.get(OPT_OUT) or SERVER in os.environ:
        pytest.skip("a server of somebody else is not restarted")
    with troubled(find(os.environ)) as server:
        yield server


@pytest.mark.parametrize("how", ["fast", "immediate"])
def test_report_that_finds_its_server_gone_is_made_again_and_written_once(troubled_server, how) -> None:
    seen = asyncio.run(alone(troubled_server, how))
    assert seen.problems() == []
    assert "store_away" in seen.shown, "the write met the outage"
    assert seen.shown.count("slot_resumed") == 1
    assert seen.shown.count("report_written") == 1
    assert seen.written[0][1] == 1, "nobody else took the lease"


@pytest.mark.parametrize("how", ["fast", "immediate"])
def test_worker_that_was_replaced_over_a_restart_has_its_late_report_refused(troubled_server, how) -> None:
    seen = asyncio.run(replaced(troubled_server, how))
    assert seen.problems() == []
    assert seen.written == [("heir", 2)]
    assert seen.frozen == ["lease_taken", "slot_claimed", "lease_lost"]
    assert [kind for kind in seen.shown if kind != "standing_by"] == [
        "lease_taken",
        "slot_resumed",
        "report_written",
        "report_delivered",
    ]
