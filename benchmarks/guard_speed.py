"""How long a check of the guard takes: `python -m benchmarks.guard_speed`.

Import and first verdict are those of a fresh process. The commit of a row is told apart from the rest, which
is what a check adds to an order. Wall time and the processor's time differ where the machine is shared.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

import thinktwice as tt
from services.store.journal_repository import JournalRepository

CHECKS = 2_000
OUTCOMES = 200
ACCOUNT = {"equity": 1e6, "cash": 1e6, "day_result": 0.0, "drawdown": 0.0, "orders": ()}
LIMITS = {
    "limits": {"entries_a_day": 10_000_000},
    "envelope": {"max_consecutive_losses": 1_000_000, "allowed_symbols": ["IBM"]},
}
FIRST = """
import time; start = time.perf_counter()
import thinktwice as tt
guard = tt.guard(store="sqlite:///{folder}/first.sqlite")
guard.check(symbol="IBM", side="buy", quantity=10, price=100, stop=98, account={{"equity": 1e5}})
print(time.perf_counter() - start, time.process_time())
"""


def bars_of(count: int = 500) -> pd.DataFrame:
    """Hourly bars of a walk."""
    rng = np.random.default_rng(0)
    close = 100.0 * np.exp(np.cumsum(rng.normal(0.0, 0.01, count)))
    opened = np.concatenate([close[:1], close[:-1]])
    high, low = np.maximum(opened, close) * 1.002, np.minimum(opened, close) * 0.998
    index = pd.date_range("2024-01-01", periods=count, freq="1h", tz="UTC")
    return pd.DataFrame(
        {"open": opened, "high": high, "low": low, "close": close, "volume": 1e3}, index=index
    )


class Commits:
    """Times every append to a journal."""

    def __init__(self) -> None:
        self.wall_s = 0.0
        append = JournalRepository.append

        async def timed(repository: Any, run_id: str, rows: Any, **how: Any) -> None:
            start = time.perf_counter()
            try:
                await append(repository, run_id, rows, **how)
            finally:
                self.wall_s += time.perf_counter() - start

        setattr(JournalRepository, "append", timed)  # noqa: B010 - a method is no variable for mypy


def measure(check: Callable[[int], object], commits: Commits) -> dict[str, float]:
    """Percentiles of many checks, ms."""
    check(-1)
    walls, cpus, appends = [], [], []
    for number in range(CHECKS):
        before, cpu, wall = commits.wall_s, time.process_time(), time.perf_counter()
        check(number)
        wall, cpu, append = time.perf_counter() - wall, time.process_time() - cpu, commits.wall_s - before
        walls.append(wall - append)
        cpus.append(cpu)
        appends.append(append)
    found = {"check": walls, "commit": appends, "processor_with_commit": cpus}
    return {
        f"{name}_{word}_ms": round(1e3 * float(np.percentile(times, share)), 3)
        for name, times in found.items()
        for word, share in (("p50", 50), ("p99", 99))
    }


def main() -> None:
    """Measure and print."""
    frame, commits = bars_of(), Commits()
    last, now = float(frame["close"].iloc[-1]), frame.index[-1].value + 3_600 * 10**9
    day_ns, earlier = 86_400 * 10**9, iter(range(10**12))
    moments = chain((now - 3 * day_ns + next(earlier) for _ in range(OUTCOMES + 2)), range(now, now + 10**12))
    with tempfile.TemporaryDirectory() as folder:
        code = [sys.executable, "-c", FIRST.format(folder=folder)]
        firsts = [
            subprocess.run(code, capture_output=True, text=True, check=True).stdout.split() for _ in range(3)
        ]
        wall_s, cpu_s = min((float(wall), float(cpu)) for wall, cpu in firsts)
        with tt.guard(
            LIMITS, store=f"sqlite:///{folder}/g.sqlite", mode="enforce", clock=moments.__next__
        ) as guard:
            order = {"symbol": "IBM", "side": "buy", "stop": last * 0.97, "target": last * 1.06}
            sent = [
                guard.check(order, quantity=1 + n / 1e3, bars=frame.iloc[: -72 - n % 3], account=ACCOUNT)
                for n in range(OUTCOMES)
            ]
            guard.settle([
                {"client_order_id": verdict.id, "r": float(np.sin(n)), "closed_at": now - day_ns}
                for n, verdict in enumerate(sent)
            ])  # fmt: skip
            limits = measure(
                lambda n: guard.check(order, quantity=10 + n / 1e4, price=last, account=ACCOUNT), commits
            )
            full = measure(
                lambda n: guard.check(order, quantity=20 + n / 1e4, bars=frame, account=ACCOUNT), commits
            )
    found = {"first_verdict_s": round(wall_s, 2), "first_verdict_processor_s": round(cpu_s, 2)}
    print(json.dumps(found | {"limits": limits, "bars_and_memory": full}, indent=1))


if __name__ == "__main__":
    main()
