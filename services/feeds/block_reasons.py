"""Why a symbol may not enter on a row; exits always run on."""

from enum import StrEnum


class BlockReason(StrEnum):
    """The first that holds is given, in this order."""

    TOO_LATE = "known too late"  # the close of the row lies too far back to trade on it
    CLOCK = "clock in doubt"  # our clock jumped, or the source's does not agree with it
    STALE = "stale"  # no bar of the symbol for too long, until it has bars again
    MISSING = "missing bar"  # the row has no bar of the symbol
    CONFLICT = "conflicting bars"  # two bars of one label disagreed; some clean bars must follow first
    IMPLAUSIBLE = "implausible bar"  # the bar of the row is in doubt; the symbol has none in it
    UNSETTLED = (
        "unsettled price"  # the bars in doubt agreed on no level; some bars within the band must follow
    )
