"""Records the figures of an independent library for the seeded curves; part of `make parity`."""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peer_runs import run_script
from benchmarks.statistics_cases import FIGURES, FILE, LIBRARY, SEEDS, bars_per_year, curve, figures


def record() -> dict[str, Any]:
    """The library's figures of every curve."""
    curves = [curve(seed) for seed in SEEDS]
    with tempfile.TemporaryDirectory() as name:
        job, out = Path(name) / "curves.npz", Path(name) / "figures.json"
        np.savez(
            job,
            equity=np.array([equity for equity, _, _ in curves]),
            per_year=np.array([bars_per_year(times) for _, times, _ in curves]),
        )
        run_script(LIBRARY, [job, out])
        about = json.loads(out.read_text("utf-8"))
    return {
        "command": "make parity",
        "figures": {str(seed): found for seed, found in zip(SEEDS, about["figures"], strict=True)},
        "peer": LIBRARY.title,
        "python": about["python"],
        "version": about["version"],
    }


def main() -> int:
    """Write the recording; print the largest relative difference of each figure."""
    found = record()
    FILE.write_text(json.dumps(found, indent=2, sort_keys=True) + "\n", "utf-8")
    for name in FIGURES:
        gaps = [abs(figures(seed)[name] / found["figures"][str(seed)][name] - 1.0) for seed in SEEDS]
        sys.stdout.write(f"{name}: largest relative difference {max(gaps):.1e}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
