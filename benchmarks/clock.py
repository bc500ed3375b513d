"""CPU time of a piece of work: warm, several times, the median."""

import time
from collections.abc import Callable
from statistics import median

REPEATS = 7


def cpu_seconds(work: Callable[[], object], repeats: int = REPEATS) -> float:
    """Median CPU time of several runs; the first, which may compile, is not counted."""
    work()
    times = []
    for _ in range(repeats):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return median(times)
