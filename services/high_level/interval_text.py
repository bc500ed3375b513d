"""An interval in words: both edges, or that a side is open, and whether the mean moved."""


def interval_text(lower: float | None, upper: float | None, kind: str = "") -> str:
    """`[-0.20, +0.38]`, `[-0.20, open]`, `[open, +0.38]`, or `open`; R with two digits.

    `moved` follows where the mean did, and stands alone where no mean fits.
    """
    if kind == "moved":
        return "moved" if lower is None and upper is None else f"{interval_text(lower, upper)} moved"
    if lower is None and upper is None:
        return "open"
    edges = ("open" if edge is None else f"{edge:+.2f}" for edge in (lower, upper))
    return f"[{', '.join(edges)}]"
