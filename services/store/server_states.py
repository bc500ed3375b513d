"""What PostgreSQL's error codes mean for a store: what is wrong, what to do, whether waiting helps.

Codes are the same in every language and version of the server, its messages are not. A process that trades
waits for whatever passes without it being started anew: connections that ran out, a lock, somebody who
cancelled a command, a server that goes down or took over.
"""

from dataclasses import dataclass

READ_ONLY = "25006"


@dataclass(frozen=True)
class Meaning:
    """What is wrong with a store and the next step, and whether the same call may succeed later."""

    text: str
    retryable: bool


DAMAGED = Meaning("is damaged: restore it from a backup, or give another --db", False)
_CONNECTION = Meaning("closed the connection: check that the server runs", True)
_NO_CONNECTION_LEFT = Meaning("has no connection left: try again in a moment, or raise its limit", True)
_SHUTTING_DOWN = Meaning("closed the connection: it is shutting down or starting again", True)
_OTHER_TRANSACTION = Meaning("was in use by another transaction: try again in a moment", True)
_TOOK_TOO_LONG = Meaning("closed a connection that had been in use for too long: try again in a moment", True)
_SHORT = Meaning("is short of memory or other resources: try again in a moment", True)
_REFUSED = Meaning("refused the user or password: check the --db address", False)

# Of one code, before those of its class (the first two letters).
STATES: dict[str, Meaning] = {
    READ_ONLY: Meaning("is read-only, as a standby is: try again in a moment, or name the primary", True),
    "25P03": _TOOK_TOO_LONG,
    "25P04": _TOOK_TOO_LONG,
    "28000": Meaning("does not let this user in: check the --db address and the server's pg_hba.conf", False),
    "28P01": _REFUSED,
    "3D000": Meaning("has no such database: create it, or check the --db address", False),
    "40002": Meaning("did not take what was written, a constraint was broken", False),
    "42501": Meaning("does not give this user the right to do that: grant it", False),
    "53100": Meaning("cannot be written, the disk is full: free some space", False),
    "53300": _NO_CONNECTION_LEFT,
    "53400": Meaning("refused to go beyond a limit of its configuration: raise it", False),
    "55006": _OTHER_TRANSACTION,
    "55P03": Meaning("waited too long for a lock that somebody else holds: try again in a moment", True),
    "57014": Meaning("cancelled the command: somebody asked for it, or it took too long; try again", True),
    "57P03": Meaning("is starting up or shutting down: try again in a moment", True),
    "57P04": Meaning("dropped the database: create it, or check the --db address", False),
    "57P05": _TOOK_TOO_LONG,
    "58030": Meaning("cannot be read or written (disk I/O error): check the disk", False),
    "XX001": DAMAGED,
    "XX002": DAMAGED,
}
CLASSES: dict[str, Meaning] = {
    "08": _CONNECTION,
    "28": _REFUSED,
    "40": _OTHER_TRANSACTION,
    "53": _SHORT,
    "57": _SHUTTING_DOWN,
}


def meaning_of(state: str) -> Meaning | None:
    """What a code means for a store; None for one that says nothing about the server itself."""
    return STATES.get(state) or CLASSES.get(state[:2])
