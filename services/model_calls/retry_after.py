"""How long the other side asks to wait (`Retry-After`), and how long it is obeyed: an hour at most, told.

Only seconds are read: a date needs a clock that both sides agree on.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

LONGEST_S = 3_600.0
_SECONDS = re.compile(r"[0-9]+([.][0-9]+)?")


@dataclass(frozen=True)
class Pause:
    """A wait that was asked for.

    Attributes:
        asked_s: seconds as they were asked for.
        most_s: seconds that are waited at most.
    """

    asked_s: float
    most_s: float = LONGEST_S

    @property
    def wait_s(self) -> float:
        """Seconds that are waited."""
        return min(self.asked_s, self.most_s)

    @property
    def shown(self) -> str | None:
        """What to say of a wait that is not obeyed in full; None for any other."""
        if self.asked_s <= self.most_s:
            return None
        question = f"of {self.asked_s:g} s" if math.isfinite(self.asked_s) else "up to a date"
        return f"it asks for a pause {question}, of which {self.most_s:g} s are kept"


def pause_of(
    headers: Mapping[str, str], most_s: float = LONGEST_S, *, name: str = "retry-after", unit_s: float = 1.0
) -> Pause | None:
    """The wait that headers ask for; None where they do not, or not by a number that is zero or more.

    Args:
        headers: of an answer; the case of their names does not matter.
        most_s: seconds that are waited at most.
        name: of the header, in small letters.
        unit_s: seconds of its unit.
    """
    for key, value in headers.items():
        text = str(value).strip()
        if str(key).lower() == name and _SECONDS.fullmatch(text):
            return Pause(float(text) * unit_s, most_s)
    return None
