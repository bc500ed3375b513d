"""What every parity test does: bars made anew, `simulate` with the peer's settings, the recorded trades."""

from functools import cache

from benchmarks.comparison import Comparison, compare
from benchmarks.crossing import bars_sha256, crossings_sha256, simulate_trades
from benchmarks.parity_cases import CASES, PEERS, Case, Recording, read_recording, settings_of


@cache
def recording(name: str) -> Recording:
    """The recorded lists of a peer, read once."""
    return read_recording(name)


def every_case() -> list[tuple[str, Case]]:
    """Peer and case of every recorded list."""
    return [(name, case) for name, cases in CASES.items() for case in cases]


def read_shown(case: tuple[str, Case]) -> str:
    """Name of a parameter."""
    return f"{case[0]}-{case[1].name}"


def compared(name: str, case: Case, relative: float) -> Comparison:
    """Our trades beside theirs, on bars that are proven to be the recorded ones."""
    about = next(about for about in recording(name).about["cases"] if about["name"] == case.name)
    bars = case.bars()
    assert bars_sha256(bars) == about["bars_sha256"], "other bars than the recorded ones: run make parity"
    assert crossings_sha256(bars) == about["crossings_sha256"], "averages cross elsewhere: run make parity"
    theirs = recording(name).trades[case.name]
    assert len(theirs) == about["trades"] > 0
    return compare(simulate_trades(bars, recording(name).switches), theirs, relative)


def recorded_as_asked(name: str) -> bool:
    """Whether the lists were recorded with the settings and cases that the command has now."""
    about = recording(name).about
    names = [case["name"] for case in about["cases"]]
    return about["settings"] == settings_of(PEERS[name]) and names == [case.name for case in CASES[name]]
