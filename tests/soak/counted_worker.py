"""`thinktwice` with one addition: SIGUSR1 writes the number of tasks of its event loop into a file.

`python -m tests.soak.counted_worker FILE WORDS...`
"""

import asyncio
import signal
import sys
from pathlib import Path
from types import FrameType

from worker.cli import app


def counting(file: Path) -> None:
    """Count when asked; the file appears at once or not at all."""

    def count(_signum: int, _frame: FrameType | None) -> None:
        try:
            tasks = len(asyncio.all_tasks())
        except RuntimeError:  # between two event loops
            tasks = 0
        part = file.with_suffix(".part")
        part.write_text(str(tasks), "ascii")
        part.replace(file)

    signal.signal(signal.SIGUSR1, count)


if __name__ == "__main__":
    counting(Path(sys.argv[1]))
    sys.argv = ["thinktwice", *sys.argv[2:]]
    app()
