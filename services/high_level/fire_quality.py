"""Fire quality: how often an entry rule fires, how its theses end, and what its trades bring.

An entry rule is one direction of a playbook. The window since the last report stands beside the window
before. Monitoring only: shares and means of a few trades move by chance, and nothing follows from them by
itself.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import fsum

from schemas.slow_reflection import FireCounts, FirePair, FireQuality, FireWindow

MINIMUM_FIRES = 5
SHARE_SHIFT = 0.2
MEAN_SHIFT_R = 0.5


def rule_name(playbook_id: str, direction: str) -> str:
    """`playbook|direction`, the key of an entry rule."""
    return f"{playbook_id}|{direction}"


def fire_quality(fires: Mapping[str, FirePair]) -> tuple[FireQuality, ...]:
    """One row per entry rule that fired or traded in either window, in name order."""
    rows = []
    for name, pair in sorted(fires.items()):
        playbook_id, _, direction = name.rpartition("|")
        rows.append(
            FireQuality(
                playbook_id=playbook_id,
                direction=direction,
                now=_window(pair.now),
                before=_window(pair.before),
            )
        )
    return tuple(rows)


def fire_texts(rows: Sequence[FireQuality]) -> tuple[str, ...]:
    """A line for every share that moved by 0.2 and every mean that moved by 0.5R, on at least 5 in both."""
    return tuple(text for row in rows for text in _texts(row))


def _window(counts: FireCounts) -> FireWindow:
    r = sorted(counts.r)
    return FireWindow(
        armed=counts.armed,
        activated=counts.activated,
        expired=counts.expired,
        activation_share=_share(counts.activated, counts.armed),
        expiry_share=_share(counts.expired, counts.armed),
        trades=len(r),
        mean_r=round(fsum(r) / len(r), 9) if r else None,
    )


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 9) if whole else None


def _texts(row: FireQuality) -> Iterable[str]:
    rule = f"fire quality {row.playbook_id} {row.direction}"
    now, before = row.now, row.before
    if min(now.armed, before.armed) >= MINIMUM_FIRES:
        shares = (
            ("activated", now.activation_share, before.activation_share),
            ("expired", now.expiry_share, before.expiry_share),
        )
        for name, new, old in shares:
            if new is not None and old is not None and abs(new - old) >= SHARE_SHIFT:
                yield f"{rule}: share {name} went from {old:.2f} to {new:.2f}"
    if min(now.trades, before.trades) < MINIMUM_FIRES or now.mean_r is None or before.mean_r is None:
        return
    if abs(now.mean_r - before.mean_r) >= MEAN_SHIFT_R:
        yield (
            f"{rule}: mean R went from {before.mean_r:+.2f} to {now.mean_r:+.2f} on {before.trades} and "
            f"{now.trades} trades"
        )
