"""Runs other engines on our bars, each in an environment of its own, and reads back their trades.

No peer is a dependency of the project: `uv run --no-project` makes the environment from the pinned file
beside the script, and only numbers cross the border.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.crossing import BRACKET, TRADE_COLUMNS, Switches, averages
from schemas.errors import ConfigError
from trading_core.bars import BarSeries

FOLDER = Path(__file__).resolve().parent / "peers"
PYTHON = "3.11"
OWN = "thinktwice"  # the one script that runs in the present environment
INSTALL_CAP_S = 900.0


class TooSlow(ConfigError):
    """A peer did not finish within its cap."""


@dataclass(frozen=True)
class Peer:
    """An engine, or one form of it.

    Attributes:
        title: as printed.
        name: of its script and its pinned requirements.
        form: handed to the script.
        switches: arguments of `simulate` that make this engine behave like it.
        tick: prices handed to it lie on this grid; 0 for any price.
    """

    title: str
    name: str
    form: str = ""
    switches: Switches = field(default_factory=dict)
    tick: float = 0.0


@dataclass(frozen=True)
class PeerRun:
    """What a peer made of the bars.

    Attributes:
        trades: `TRADE_COLUMNS`.
        version: of the peer.
        python: it ran on.
        seconds: CPU of each run in its process, the first one first.
        peak_mb: largest resident size of its process.
    """

    trades: pd.DataFrame
    version: str
    python: str
    seconds: tuple[float, ...]
    peak_mb: float

    @property
    def first_s(self) -> float:
        """CPU seconds of the first run, compilation included."""
        return self.seconds[0]

    @property
    def median_s(self) -> float:
        """Median of the runs after the first; of the only one, if there is no other."""
        return median(self.seconds[1:] or self.seconds)


def run_peer(
    peer: Peer,
    bars: BarSeries,
    *,
    repeats: int = 1,
    cap_s: float = INSTALL_CAP_S,
    settings: dict[str, Any] | None = None,
) -> PeerRun:
    """One process of the peer on these bars; the bracket is `BRACKET`.

    Raises:
        ConfigError: it failed or took longer than `cap_s` wall seconds.
    """
    with tempfile.TemporaryDirectory() as name:
        job, out = Path(name) / "job.npz", Path(name) / "out.npz"
        fast, slow = averages(bars)
        wanted = {"out": str(out), "repeats": repeats, "form": peer.form, "maker_fee_bps": BRACKET["fee_bps"]}
        np.savez(
            job, times=bars.times, open=bars.open, high=bars.high, low=bars.low, close=bars.close,
            fast=fast, slow=slow, settings=np.array(json.dumps({**wanted, **BRACKET, **(settings or {})})),
        )  # fmt: skip
        run_script(peer, [job], cap_s)
        with np.load(out) as found:
            table, about = found["trades"], json.loads(str(found["about"]))
    seconds = tuple(about["seconds"])
    return PeerRun(trade_table(table), about["version"], about["python"], seconds, about["peak_mb"])


def trade_table(rows: Any) -> pd.DataFrame:
    """Rows of `TRADE_COLUMNS`, symbol and row numbers as whole numbers."""
    frame = pd.DataFrame(np.asarray(rows, dtype=np.float64), columns=list(TRADE_COLUMNS))
    return frame.astype({name: np.int64 for name in TRADE_COLUMNS[:3]})


def install(peer: Peer) -> None:
    """Make the peer's environment, so that no run pays for it."""
    _run(peer, ["-c", "pass"], INSTALL_CAP_S)


def run_script(
    peer: Peer, given: Sequence[Path | str], cap_s: float = INSTALL_CAP_S, *, script: str | None = None
) -> None:
    """Run a script of the peer in its environment: `run_NAME.py`, or another one of its folder.

    Raises:
        ConfigError: it failed or took longer than `cap_s` wall seconds.
    """
    _run(peer, [str(FOLDER / (script or f"run_{peer.name}.py")), *map(str, given)], cap_s)


def _run(peer: Peer, arguments: list[str], cap_s: float) -> None:
    environment = {**os.environ, "PYTHONPATH": str(FOLDER.parents[1])} if peer.name == OWN else None
    started = subprocess.Popen(
        [*_python(peer), *arguments], cwd=FOLDER, env=environment, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        errors = started.communicate(timeout=cap_s)[1]
    except subprocess.TimeoutExpired:
        # uv starts the interpreter as a child of its own, which would go on: end the whole group.
        os.killpg(started.pid, signal.SIGKILL)
        started.communicate()
        message = f"{peer.title} took longer than {cap_s:g} s: raise the cap or give fewer bars"
        raise TooSlow(message) from None
    if started.returncode:
        raise ConfigError(f"{peer.title} failed; its last words:\n{errors[-2_000:]}")


def _python(peer: Peer) -> list[str]:
    """The interpreter of the peer's environment; this engine runs in the present one."""
    if peer.name == OWN:
        return [sys.executable]
    command = ["uv", "run", "--quiet", "--no-project", "--python", PYTHON]
    return [*command, "--with-requirements", str(FOLDER / f"{peer.name}.txt"), "python"]
