"""Small bar files as text, for the tests of the feeds."""

HEADER = "time,open,high,low,close,volume"
BAR = "10,12,9,11,100"


def days(*numbers: int, month: str = "2012-01", zone: str = "T00:00:00Z") -> list[str]:
    """Time labels of some days of a month."""
    return [f"{month}-{number:02d}{zone}" for number in numbers]


def bar_csv(times: list[str], bars: list[str] | None = None, header: str = HEADER) -> str:
    """A single-symbol CSV with the same good bar at each time, unless bars are given."""
    rows = [f"{time},{bar}" for time, bar in zip(times, bars or [BAR] * len(times), strict=True)]
    return "\n".join([header, *rows]) + "\n"
