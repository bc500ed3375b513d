"""A guarded agent that is killed: `python -m benchmarks.guard_kills --kills 30`.

A process checks, spends and sends one order after another to a broker that is a file, and dies by SIGKILL
before the commit of a verdict, between commit and return, before it sends, or behind that. What counts is
that no order lies at the broker without an earlier verdict and its one use in the journal.
"""

import argparse
import asyncio
import itertools
import json
import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

import thinktwice as tt
from services.journal.chain import check_chain
from services.store import open_store
from services.store.journal_repository import JournalRepository

POINTS = ("before the commit", "between commit and return", "before it is sent", "behind that")
ORDERS = 3  # that a process sends before it dies
ACCOUNT = {"equity": 100_000.0, "day_result": 0.0, "drawdown": 0.0, "orders": ()}


def send_until_killed(address: str, broker: Path, point: str, number: int) -> None:
    """The guarded agent; it never returns."""
    append = JournalRepository.append
    checked = itertools.count()

    async def append_and_die(self: Any, run_id: str, rows: Any, **how: Any) -> None:
        last = rows and rows[0].kind == "guard_verdict" and next(checked) == ORDERS
        if last and point == POINTS[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        await append(self, run_id, rows, **how)
        if last and point == POINTS[1]:
            os.kill(os.getpid(), signal.SIGKILL)

    setattr(JournalRepository, "append", append_and_die)  # noqa: B010 - a method is no variable for mypy
    limits = {"limits": {"entries_a_day": 1_000_000}}
    guard = tt.guard(limits, store=address, mode="enforce")
    for order in itertools.count():
        fields = {
            "symbol": "IBM",
            "side": "buy",
            "quantity": 1 + 10 * number + order,  # none is a duplicate of another
            "price": 10,
            "stop": 9.8,
        }
        verdict = guard.check(fields, account=ACCOUNT)
        if order == ORDERS and point == POINTS[2]:
            os.kill(os.getpid(), signal.SIGKILL)
        if verdict:
            guard.spend(verdict.id, fields)
            with broker.open("a") as sent:
                sent.write(f"{verdict.id}\n")
                sent.flush()
        if order == ORDERS and point == POINTS[3]:
            os.kill(os.getpid(), signal.SIGKILL)


async def count_orders(address: str, sent: list[str]) -> dict[str, int]:
    """Orders at the broker, those without a verdict and its use before, and whether the chain holds."""
    async with await open_store(address, create=False, read_only=True) as store:
        run = await store.runs.find("latest")
        rows = [row async for row in store.journal.rows(run.run_id)]
        chain = await check_chain(
            store.journal.as_stored(run.run_id), events=run.events, head_hash=run.head_hash
        )
    found = {kind: {json.loads(row.payload)["verdict_id"] for row in rows if row.kind == kind}
             for kind in ("guard_verdict", "guard_spent")}  # fmt: skip
    uncovered = [
        name for name in sent if name not in found["guard_verdict"] or name not in found["guard_spent"]
    ]
    return {
        "sent": len(sent),
        "sent_twice": len(sent) - len(set(sent)),
        "verdicts": len(found["guard_verdict"]),
        "without_a_verdict": len(uncovered),
        "chain_holds": int(chain.ok),
    }


def main() -> int:
    """Kill, count and print; 1 where an order had no verdict."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=30)
    kills = parser.parse_args().kills
    with tempfile.TemporaryDirectory() as folder:
        address, broker = f"sqlite:///{folder}/guard.sqlite", Path(folder, "broker")
        for number in range(kills):
            pid = os.fork()  # nothing has started a thread here yet
            if pid == 0:
                send_until_killed(address, broker, POINTS[number % len(POINTS)], number)
            _, status = os.waitpid(pid, 0)
            if os.WTERMSIG(status) != signal.SIGKILL:
                raise RuntimeError(f"process {number} ended with {status} before it was killed")
        found = {"kills": kills} | asyncio.run(count_orders(address, broker.read_text().split()))
    print(json.dumps(found))
    return int(found["without_a_verdict"] > 0 or not found["chain_holds"])


if __name__ == "__main__":
    sys.exit(main())
