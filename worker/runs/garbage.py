"""When garbage is collected: seldom, because cycles are few and walking over all that is loaded is dear.

It must import nothing that takes time.
"""

import gc

# New objects between two collections.
COLLECT_AT, COLLECT_WHILE_LOADING_AT = 50_000, 500_000


def loading_begins() -> None:
    """Hardly collect anything: nearly all that is made while a command is loaded stays."""
    gc.set_threshold(COLLECT_WHILE_LOADING_AT)


def all_is_loaded() -> None:
    """Leave what was loaded since `loading_begins` out of every collection from now on."""
    if gc.get_threshold()[0] == COLLECT_WHILE_LOADING_AT:
        gc.freeze()
        gc.set_threshold(COLLECT_AT)


def much_was_read(rows: int) -> None:
    """Leave many rows that stay out of every collection: one over a million of them takes seconds."""
    if rows >= COLLECT_AT:
        gc.freeze()
