"""F4: PostgreSQL stopped and started again at random moments of a report of the slow loop."""

import asyncio
import logging
import os
import random

from tests.postgres.binaries import find
from tests.postgres.server import troubled
from tests.soak.findings import Finding, quantile
from tests.soak.scale import scaled
from tests.worker.slow_worker.restarts import LEASE_MS, Restart, Stop, alone, moments, replaced

RESTARTS, REPLACED = 20, 5
REPORT_S, WRITTEN_S = 0.5, 0.1  # what a report lasts at least, and its way into the store
SHORTEST_S, LONGEST_S = 0.0, 1.0
BACK_S = 5.0
HOW: tuple[Stop, ...] = ("fast", "immediate")


def check() -> list[Finding]:
    """Each way to stop on a server of its own."""
    logging.getLogger("apscheduler").setLevel(logging.ERROR)  # a look that waits skips the next ones
    found = []
    for seed, how in enumerate(HOW):
        with troubled(find(os.environ)) as server:
            generator, went = random.Random(100 + seed), []
            for after_s in moments(seed, scaled(RESTARTS), REPORT_S + WRITTEN_S):
                down_s = generator.uniform(SHORTEST_S, LONGEST_S)
                lived = alone(server, how, after_s=after_s, lasts_s=REPORT_S, down_s=down_s)
                went.append(asyncio.run(lived))
            late = [asyncio.run(replaced(server, how)) for _ in range(scaled(REPLACED))]
        found += [_alone(how, went), _replaced(how, late)]
    return found


def _alone(how: str, went: list[Restart]) -> Finding:
    breaks = [problem for restart in went for problem in restart.problems()]
    away = sum("store_away" in restart.shown for restart in went)
    resumed = sum("slot_resumed" in restart.shown for restart in went)
    back_s = quantile([restart.back_s for restart in went], 0.95)
    return Finding(
        "F4",
        f"{how} stop and start at {len(went)} random moments of a report, one worker",
        f"exactly one report and one verdict, the slot done within {BACK_S:.0f} s of the return",
        f"{sum(len(restart.written) for restart in went)} reports and "
        f"{sum(restart.verdicts for restart in went)} verdicts of {len(went)} slots; "
        f"{away} looks met the outage, {resumed} reports were made again; "
        f"verdict p95 {back_s:.2f} s after the return",
        not breaks and back_s < BACK_S,
        tuple(breaks),
    )


def _replaced(how: str, went: list[Restart]) -> Finding:
    breaks = [problem for restart in went for problem in restart.problems()]
    breaks += [f"written by {restart.written}" for restart in went if restart.written != [("heir", 2)]]
    refused = sum(restart.frozen[-1:] == ["lease_lost"] for restart in went)
    limit_s = LEASE_MS / 1e3 + BACK_S
    back_s = max(restart.back_s for restart in went)
    return Finding(
        "F4",
        f"{how} stop and start under {len(went)} workers that are frozen with their report; another takes "
        "over and the first one writes late",
        f"exactly one report, of the new epoch, within {limit_s:.0f} s; the late write refused",
        f"{refused} of {len(went)} late writes of epoch 1 refused, reports of epoch 2 at most {back_s:.2f} s "
        "after the return",
        not breaks and refused == len(went) and back_s < limit_s,
        tuple(breaks),
    )
