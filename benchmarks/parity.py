"""Runs the peers of the parity tests and records their trade lists; see `make parity`.

The tests read the recordings and need no peer. Prints how many trades are equal, and every one that is not.
"""

import sys
from typing import Any

import pandas as pd

from benchmarks.comparison import compare
from benchmarks.crossing import BRACKET, bars_sha256, crossings_sha256, simulate_trades
from benchmarks.parity_cases import CASES, PEERS, Case, Recording, settings_of, write_recording
from benchmarks.peer_runs import Peer, install, run_peer


def record(peer: Peer, case: Case) -> tuple[pd.DataFrame, dict[str, Any]]:
    """The peer's trades on one case, and what identifies the case."""
    bars = case.bars()
    maker = peer.switches.get("maker_fee_bps", BRACKET["fee_bps"])
    run = run_peer(peer, bars, settings={"maker_fee_bps": maker})
    about = {
        "bars": bars.shape[0],
        "bars_sha256": bars_sha256(bars),
        "crossings_sha256": crossings_sha256(bars),
        "name": case.name,
        "seed": case.seed,
        "symbol": case.symbol,
        "tick": case.tick,
        "trades": len(run.trades),
        "version": run.version,
        "python": run.python,
    }
    found = compare(simulate_trades(bars, peer.switches), run.trades)
    sys.stdout.write(f"{peer.title} {run.version}, {case.name}: {found.equal} of {found.theirs} equal\n")
    if len(found.differing):
        sys.stdout.write(found.differing.to_string() + "\n")
    return run.trades, about


def main(names: list[str]) -> int:
    """Record the named peers, or all."""
    for name in names or list(PEERS):
        peer = PEERS[name]
        install(peer)
        parts = {case.name: record(peer, case) for case in CASES[name]}
        abouts = [about for _, about in parts.values()]
        recording = Recording(
            {
                "cases": [
                    {key: value for key, value in about.items() if key not in ("version", "python")}
                    for about in abouts
                ],
                "command": "make parity",
                "peer": peer.title,
                "python": abouts[0]["python"],
                "settings": settings_of(peer),
                "version": abouts[0]["version"],
            },
            {case: trades for case, (trades, _) in parts.items()},
        )
        for path in write_recording(peer, recording):
            sys.stdout.write(f"{path}: {path.stat().st_size:,} bytes\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
