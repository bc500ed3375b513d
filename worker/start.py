"""Where the command `thinktwice` starts: Ctrl-C is heard before anything is imported, and until the very end.

It must import nothing that takes time before it listens.
"""

import gc
import signal

from worker.runs.interrupts import leave_at_once

# New objects between two collections of garbage: cycles are few, and walking over all that is loaded is dear.
COLLECT_AT = 50_000


def main() -> None:
    """Run the command line; leaves with its exit code."""
    gc.set_threshold(COLLECT_AT)
    signal.signal(signal.SIGINT, leave_at_once)
    try:
        from worker.cli import app

        app()
    finally:
        # Everything is closed now, and an interpreter that ends answers Ctrl-C with a traceback.
        signal.signal(signal.SIGINT, leave_at_once)
