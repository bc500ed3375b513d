# mypy: ignore-errors
"""What every peer script shares: reading the job, timing the runs, writing what came out.

Imports numpy alone, because it runs inside each peer's own environment. The job is an `.npz` with bars,
both averages and a JSON of settings; the answer is an `.npz` with the trades and a JSON of versions and CPU
seconds. Row numbers stand for times, so that no engine's idea of a time stamp gets between the lists.
"""

import json
import resource
import sys
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np

TRADE_COLUMNS = ("symbol", "entry_bar", "exit_bar", "entry_price", "exit_price", "fees", "pnl")


class Job:
    """One request: bars of shape (T, S), averages of the same shape, settings."""

    def __init__(self, path):
        with np.load(path) as found:
            self.arrays = {name: found[name] for name in found.files if name != "settings"}
            settings = json.loads(str(found["settings"]))
        self.settings = settings
        self.out = Path(settings["out"])
        self.repeats = int(settings["repeats"])
        self.stop_pct = settings["stop_pct"]
        self.target_pct = settings["target_pct"]
        self.time_stop = int(settings["time_stop_bars"])
        self.fee = settings["fee_bps"] / 1e4
        self.rows, self.symbols = self.arrays["open"].shape

    def column(self, name, s):
        """One array of one symbol, contiguous."""
        return np.ascontiguousarray(self.arrays[name][:, s])

    def crossed(self, s):
        """Whether the fast average crosses above the slow one at each close."""
        fast, slow = self.column("fast", s), self.column("slow", s)
        found = np.zeros(self.rows, dtype=bool)
        found[1:] = (fast[1:] > slow[1:]) & (fast[:-1] <= slow[:-1])
        return found

    def times(self):
        """Labels as datetime64[ns]."""
        return self.arrays["times"].astype("datetime64[ns]")


def peak_mb():
    """Largest resident size of this process.

    Linux lets the figure of getrusage begin with that of the process that started this one; the one in /proc
    is its own.
    """
    status = Path("/proc/self/status")
    if status.exists():
        lines = status.read_text("utf-8").splitlines()
        return next(float(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024.0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def run(package, prepare, trade, read):
    """Do the job named on the command line and write its answer.

    Args:
        package: distribution whose version is recorded.
        prepare: job -> data in the engine's own form; not timed.
        trade: (job, data) -> the engine's result; timed, from ready data to finished trades.
        read: (job, result) -> rows of `TRADE_COLUMNS`; not timed.
    """
    job = Job(sys.argv[1])
    seconds, result = [], None
    for _ in range(job.repeats):
        data = prepare(job)
        started = time.process_time()
        result = trade(job, data)
        seconds.append(time.process_time() - started)
    rows = sorted(read(job, result), key=lambda row: (row[2], row[0]))
    table = np.array(rows, dtype=np.float64).reshape(len(rows), len(TRADE_COLUMNS))
    np.savez(
        job.out,
        trades=table,
        about=json.dumps(
            {
                "package": package,
                "version": version(package),
                "python": sys.version.split()[0],
                "seconds": seconds,
                "peak_mb": peak_mb(),
            }
        ),
    )
