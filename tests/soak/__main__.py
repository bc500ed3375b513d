"""`make soak`: run the long fault and load checks, print each target with its figure, write the page.

`python -m tests.soak F13 L3` runs some of them (L3 with L5), `--short` a tenth of each; L8R, an hour in real
time, runs only by its name. `--page` only writes the page from what was measured last. Ends with 1 when a
target is missed.
"""

import os
import platform
import sys
import time
from dataclasses import replace
from importlib import import_module

from tests.soak.findings import Finding, keep, stored
from tests.soak.page import PAGE, rendered
from tests.soak.scale import VARIABLE

CHECKS = {
    "F1": "killed_processes",
    "F3": "postgres_outages",
    "F4": "report_outages",
    "F5": "lost_answers",
    "F8": "bad_bars",
    "F9": "clocks",
    "F10": "contested_slots",
    "F13": "simulated_months",
    "L1": "load:ticks",
    "L3": "load:journal",
    "L4": "load:orders",
    "L6": "batch",
    "L8": "growth",
    "L8M": "many_symbols",
    "L8R": "real_hour",
    "L9": "open_console",
}
MEASURED_WITH = {"L5": "L3"}
ONLY_BY_NAME = ("L8R",)  # an hour by the wall clock


def machine() -> dict[str, object]:
    """What the figures were measured on."""
    return {
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def checked(row: str) -> list[Finding]:
    """The findings of one row."""
    began, before = time.perf_counter(), machine()
    module, _, name = CHECKS[row].partition(":")
    found: list[Finding] = getattr(import_module(f"tests.soak.{module}"), name or "check")()
    took_s = round(time.perf_counter() - began, 1)
    return [replace(finding, machine=before, took_s=took_s) for finding in found]


def main(words: list[str]) -> int:
    """Check, print and write."""
    if {"-h", "--help"} & set(words):
        sys.stdout.write(__doc__ or "")
        return 0
    named = dict.fromkeys(MEASURED_WITH.get(word, word) for word in words if not word.startswith("-"))
    rows = [*named] or [row for row in CHECKS if row not in ONLY_BY_NAME]
    if unknown := set(rows) - set(CHECKS):
        sys.stderr.write(f"no check {sorted(unknown)}: there are {', '.join(CHECKS)}\n")
        return 2
    if "--short" in words:
        os.environ[VARIABLE] = "0.1"
    missed = 0
    for row in [] if "--page" in words else rows:
        found = checked(row)
        for finding in found:
            verdict = "held" if finding.held else "MISSED"
            sys.stdout.write(
                f"{finding.row} {finding.check}\n  target   {finding.target}\n  measured {finding.measured}\n"
            )
            sys.stdout.write("".join(f"  broken   {text}\n" for text in finding.breaks[:5]))
            sys.stdout.write(f"  {verdict}\n")
            sys.stdout.flush()
            missed += not finding.held
        keep(found)
    PAGE.write_text(rendered(stored()), "utf-8")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
