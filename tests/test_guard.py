"""`tt.guard` as a stranger uses it: checks before orders, journalled, spent once."""

import asyncio
import subprocess
import sys

import pytest

import thinktwice as tt
from services.store import open_store

DAY_NS = 86_400_000_000_000
NOON = 19_000 * DAY_NS + DAY_NS // 2
ACCOUNT = {"equity": 100_000.0, "day_result": 0.0, "drawdown": 0.0, "orders": []}
BUY = {"symbol": "IBM", "side": "buy", "quantity": 50, "price": 100.0, "stop": 98.0}


class Clock:
    """Time that a test moves by hand, ns."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> int:
        self.now += 1
        return self.now

    def wait(self, seconds: float) -> None:
        self.now += int(seconds * 1e9)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def address(tmp_path) -> str:
    return f"sqlite:///{tmp_path}/guard.sqlite"


@pytest.fixture
def guard(address, clock):
    with tt.guard(store=address, mode="enforce", clock=clock) as made:
        yield made


def rows(address: str, *kinds: str) -> list:
    async def read() -> list:
        async with await open_store(address, create=False, read_only=True) as store:
            run = await store.runs.find("latest")
            return [row async for row in store.journal.rows(run.run_id) if not kinds or row.kind in kinds]

    return asyncio.run(read())


def codes(verdict: tt.Verdict) -> list[str]:
    return [found.code for found in verdict.findings]


def test_guard_right_order_passes_and_its_row_is_there(guard, address):
    verdict = guard.check(BUY, account=ACCOUNT, why="a breakout")
    assert verdict
    assert verdict.status == "pass"
    (row,) = rows(address, "guard_verdict")
    assert f'"verdict_id":"{verdict.id}"' in row.payload


def test_guard_faulty_order_is_false_and_says_what_would_pass(guard):
    verdict = guard.check(BUY, quantity=1_000, account=ACCOUNT)
    assert not verdict
    assert "quantity at most 250.0 would pass" in verdict.reply


def test_guard_value_of_the_remedy_passes(guard):
    refused = guard.check(BUY, quantity=1_000, account=ACCOUNT)
    most = min(found.remedy.value for found in refused.findings)
    assert guard.check(BUY, quantity=most, account=ACCOUNT)


def test_guard_in_shadow_refuses_nothing_and_says_what_it_would_have_done(address, clock):
    with tt.guard(store=address, clock=clock) as guard:
        verdict = guard.check(BUY, quantity=1_000, account=ACCOUNT)
        assert verdict
        assert verdict.status == "revise"
        guard.spend(verdict.id, BUY)  # another order
    assert '"problem":"is of another order' in rows(address, "guard_spent")[0].payload


def test_guard_spent_verdict_is_refused_a_second_time(guard):
    verdict = guard.check(BUY, account=ACCOUNT)
    guard.spend(verdict.id, BUY)
    with pytest.raises(tt.OrderRefused, match="spent before"):
        guard.spend(verdict.id, BUY)


@pytest.mark.parametrize("change", [{"quantity": 51}, {"symbol": "IBN"}, {"reasons": "."}, {"stop": 98.0001}])
def test_guard_order_that_differs_from_the_checked_one_is_refused(guard, change):
    verdict = guard.check(BUY, account=ACCOUNT)
    with pytest.raises(tt.OrderRefused, match="another order"):
        guard.spend(verdict.id, BUY, **change)


def test_guard_expired_verdict_is_refused(guard, clock):
    verdict = guard.check(BUY, account=ACCOUNT)
    clock.wait(301)
    with pytest.raises(tt.OrderRefused, match="expired"):
        guard.spend(verdict.id, BUY)


def test_guard_refused_order_cannot_be_spent(guard):
    verdict = guard.check(BUY, quantity=1_000, account=ACCOUNT)
    with pytest.raises(tt.OrderRefused, match="no pass"):
        guard.spend(verdict.id, BUY, quantity=1_000)


def test_guard_verdict_that_another_guard_spent_is_refused(guard, address, clock):
    verdict = guard.check(BUY, account=ACCOUNT)
    with tt.guard(store=address, mode="enforce", clock=clock) as other:
        assert other.run_id == guard.run_id
        other.spend(verdict.id, BUY)
    with pytest.raises(tt.OrderRefused, match="spent before"):
        guard.spend(verdict.id, BUY)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"quantity": float("nan")}, "order.quantity = nan: input should be a finite number"),
        ({"quantity": -5}, "order.quantity = -5: input should be greater than 0"),
        ({"side": "bye"}, "order.side = 'bye': .* Did you mean 'buy'"),
        ({"notional": 5_000}, "quantity, notional: both is given"),
        ({"price": float("inf")}, "order.price = inf: input should be a finite number"),
        ({"quantty": 5}, "order.quantty: no such field. Did you mean 'quantity'"),
        ({"kind": "limit", "price": None}, "price: missing: a limit order names its price"),
    ],
)
def test_guard_bad_order_is_one_error_that_names_field_and_remedy(guard, change, words):
    with pytest.raises(tt.DataError, match=words) as caught:
        guard.check(BUY, account=ACCOUNT, **change)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("account", "words"),
    [
        ({}, "account.equity: missing"),
        ({"equity": 0}, "account.equity = 0: input should be greater than 0"),
        ({"equity": 1, "positions": {"A": {"quantity": 1}}}, "account.positions.A.price: missing"),
        (3, "account 3: give a dict"),
    ],
)
def test_guard_bad_account_is_one_error_that_names_field_and_remedy(guard, account, words):
    with pytest.raises(tt.DataError, match=words):
        guard.check(BUY, account=account)


def test_guard_import_and_limits_load_no_engine_and_no_frames(tmp_path):
    code = (
        "import thinktwice as tt, sys\n"
        f"guard = tt.guard(store='sqlite:///{tmp_path}/g.sqlite')\n"
        "guard.check(symbol='A', side='buy', quantity=1, price=1, stop=.9, account={'equity': 100})\n"
        "guard.close()\n"
        "print([name for name in ('numba', 'pandas', 'scipy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr
