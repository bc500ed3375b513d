"""Where the command `thinktwice` starts: Ctrl-C is heard before anything is imported, and until the very end.

It must import nothing that takes time before it listens.
"""

import signal

from worker.runs.garbage import loading_begins
from worker.runs.interrupts import leave_at_once


def main() -> None:
    """Run the command line; leaves with its exit code."""
    signal.signal(signal.SIGINT, leave_at_once)
    loading_begins()
    try:
        from worker.cli import app

        app()
    finally:
        # Everything is closed now, and an interpreter that ends answers Ctrl-C with a traceback.
        signal.signal(signal.SIGINT, leave_at_once)


if __name__ == "__main__":
    main()
