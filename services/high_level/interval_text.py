"""An interval in words: both edges, or that a side is open, and whether it is that of the last look alone."""


def interval_text(lower: float | None, upper: float | None, kind: str = "") -> str:
    """`[-0.20, +0.38]`, `[-0.20, open]`, `[open, +0.38]`, `open`, or `none`; R with two digits.

    `(last look)` follows where the mean moved, so that no interval of every look holds it.
    """
    if kind == "moved":
        return f"{interval_text(lower, upper)} (last look)"
    if lower is None and upper is None:
        return "none" if kind == "none" else "open"
    edges = ("open" if edge is None else f"{edge:+.2f}" for edge in (lower, upper))
    return f"[{', '.join(edges)}]"
