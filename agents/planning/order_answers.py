"""What is answered to a part that asks for a change, or for what a change would bring: the next step."""

import re
from collections.abc import Sequence

from services.plans.text_forms import FORMS

FORMS_TOLD = ", ".join(f"`{form}`" for form in FORMS)
CHANGES = (
    "I read and change nothing. These make a change plan, which waits until you approve it: "
    f"{FORMS_TOLD}. Ask for one of them alone, and what you want to know without it."
)
SUPPOSED_ANSWER = (
    "I tell what was, not what would be. Ask what it made so far, or for a change plan, whose effects are "
    f"shown before you approve it: {FORMS_TOLD}."
)
KILL_SWITCH = (
    "`thinktwice kill on --run RUN` closes the positions of a run that trades and enters no more, "
    "`thinktwice kill off --run RUN` releases it."
)
# The run itself or all that it holds is to be stopped.
STOPS = re.compile(
    r"\b(?:kill|stop|halt|close|exit|flatten|liquidate|sell|pause|suspend|freeze|shut|end|abort|terminate|cancel|resume)\b"
    r".*\b(?:runs?|backtest|trading|bot|system|process|machine|engine|positions?|everything|all|out|down)\b",
    re.IGNORECASE,
)
# An order behind a question, with what it is to change.
WITHIN = re.compile(
    r"(?:[,;]|\b(?:and|then|or)\b)\s+(?:(?:and|then|also|please|now|to)\s+)*(?:ban|allow|forbid|prohibit|retire"
    r"|pause|suspend|resume|disable|enable|set|change|lower|raise|increase|decrease|reduce|double|halve|cut"
    r"|delete|erase|remove|drop|kill|stop|cancel|buy|sell|close|place|deploy|roll back|unban|liquidate"
    r"|flatten)"
    r"\s+(?:it|them|its|all|everything|my|our|the(?! (?:most|least|best|worst|same|last|next)\b)"
    r"|risk|\w+_\w+|(?-i:[A-Z]{2,5}))\b",
    re.IGNORECASE,
)


def orders_within(text: str) -> bool:
    """Whether something is to be done behind what is asked."""
    return WITHIN.search(text) is not None


def order_answer(text: str, symbols: Sequence[str] = ()) -> str:
    """What to do instead of an order, which may be about symbols."""
    if symbols and STOPS.search(text):
        return f"Nothing stops {', '.join(symbols)} alone: a playbook is banned or retired. {CHANGES}"
    return f"{KILL_SWITCH} {CHANGES}" if STOPS.search(text) else CHANGES
