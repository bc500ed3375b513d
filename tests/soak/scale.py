"""How long the checks are: whole, or a tenth with `--short`; the table says what was really done."""

import os

VARIABLE = "SOAK_SHARE"


def scaled(count: int) -> int:
    """A count at the share that was asked for."""
    return max(1, round(count * float(os.environ.get(VARIABLE, "1"))))
