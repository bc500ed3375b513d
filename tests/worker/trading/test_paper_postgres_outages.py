"""PostgreSQL is killed, or freezes, under a live paper run: bars go on, entries wait, nothing is lost."""

import os

import pytest

from tests.postgres.binaries import OPT_OUT, SERVER, find
from tests.postgres.server import troubled
from tests.worker.trading.outages import lived


@pytest.fixture(scope="module")
def troubled_server():
    if os.environ.get(OPT_OUT) or SERVER in os.environ:
        pytest.skip("a server of somebody else is not killed")
    with troubled(find(os.environ)) as server:
        yield server


@pytest.mark.parametrize(("trouble", "down_s"), [("immediate", 0.8), ("freeze", 2.6)])
def test_paper_live_run_trades_on_while_its_server_is_gone_and_loses_nothing(
    troubled_server, trouble, down_s
) -> None:
    seen = lived(troubled_server, trouble, down_s)
    assert seen.rows_meanwhile > 3, "bars are validated from memory"
    assert seen.blocked > 0, "nobody enters what cannot be kept"
    assert seen.blocked_s is not None
    assert seen.acknowledged > 20
    assert (seen.lost, seen.problem) == (0, None)
