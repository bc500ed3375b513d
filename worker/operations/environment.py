"""Which software and machine a run ran on; stored beside a run and never part of its head hash.

Two processors may differ in SIMD and so in the last bit of a sum: `verify` prints both environments.
"""

import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PROGRAM = "thinktwice"
PACKAGES = (PROGRAM, "numpy", "numba", "scipy", "pandas", "pydantic", "sqlalchemy")


def environment() -> dict[str, str | None]:
    """Python, packages (null when absent), platform and processor; imports none."""
    found: dict[str, str | None] = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    return found | {"platform": platform.platform(), "machine": platform.machine(), "processor": _processor()}


def _processor() -> str | None:
    info = Path("/proc/cpuinfo")
    if not info.is_file():
        return platform.processor() or None
    names = (
        line.partition(":")[2].strip()
        for line in info.read_text().splitlines()
        if line.startswith("model name")
    )
    return next(names, None)
