# mypy: ignore-errors
"""Many columns of entries through vectorbt's `from_signals`: CPU seconds of each run, the first one first.

`sweep_vectorbt.py JOB OUT REPEATS`: JOB has `close` and `entries`, OUT gets `seconds` and `version`.
"""

import sys
import time

import numpy as np
import vectorbt as vbt

job = np.load(sys.argv[1])
close, entries = job["close"][:, None], job["entries"]
seconds = []
for _ in range(int(sys.argv[3])):
    started = time.process_time()
    vbt.Portfolio.from_signals(close, entries, sl_stop=0.02, tp_stop=0.04, fees=0.0005).total_return()
    seconds.append(time.process_time() - started)
np.savez(sys.argv[2], seconds=seconds, version=vbt.__version__)
