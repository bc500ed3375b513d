"""The recurrence of the regime: votes of a bar, confirmation, dwell, and the latch of a shock, with state.

A block of any size and a single step run this same code. Codes are positions of the members of `Trend`,
`VolatilityBand`, `Structure` and `RegimeReason`; -1 is no vote or not yet known.
"""

import numpy as np
import numpy.typing as npt

from trading_core.compiled import compiled, entry_point

FloatArray = npt.NDArray[np.float64]
CodeArray = npt.NDArray[np.int8]
FlagArray = npt.NDArray[np.uint8]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

LABELS = 3  # codes that are labels; events and the reason follow
UNKNOWN, TRANSITION = -1, -2
SIDEWAYS, UP, DOWN = 0, 1, 2
LOW, MID, HIGH, EXTREME = 0, 1, 2, 3
NEUTRAL, COMPRESSION, EXPANSION, MEAN_REVERTING, BREAKOUT, BREAKDOWN = 0, 1, 2, 3, 4, 5
WARMING_UP, INITIAL, UNCHANGED, UNKNOWN_INPUT, UNCONFIRMED, DWELLING, BAND_SHIFTED, CHANGED, SHOCK = range(
    1, 10
)

# Rows of the inputs, in the order of `regime.FEATURES_READ`.
_TREND_RANK, _VOLATILITY_RANK, _BANDWIDTH_RANK, _VOLUME_RANK, _RANGE_RANK, _MOVE_RANK = range(6)
_DOUBLE_RANK, _REDUCED_RANK, _STRENGTH, _MOVE, _VOLATILITY, _STRETCH_RANK, _CLOSE, _HIGHEST, _LOWEST = range(
    6, 15
)
# Positions of the settings, in the order of `regime.RegimeSettings`.
_WEAK, _STRONG, _FAST, _CHOP_BARS, _LOW_BAND, _HIGH_BAND, _EXTREME_BAND = range(7)
_SHOCK, _COMPRESSED, _EXPANDED, _STRETCHED = range(7, 11)
_CONFIRM, _CONFIRM_OF, _SIDEWAYS_CONFIRM, _SIDEWAYS_CONFIRM_OF, _DWELL = range(11, 16)
RANKS = 8  # five of the fingerprint, two of the trend's vote, one of the shock

# State: a label is its code + 1 (0: none yet), the bars since it changed, and its last votes; twice, then the
# ranks last known, then the latch of a shock with its level and its votes for calm.
VOTES = 60
_LABEL_CELLS = 2 + 1 + VOTES
_KEPT = 2 * _LABEL_CELLS
_TURNS = _KEPT + RANKS
_LATCH = _TURNS + 4
STATE_SIZE = _LATCH + _LABEL_CELLS
TURN_CLOSES = 3  # closes on the other side of zero that make a turn of the trend


@compiled
def _is_choppy(strength: float, turns: FloatArray, bars: float) -> bool:
    # turns: the side (1 up, 2 down, 0 none yet), closes on the other side, bars since the last two turns + 1
    if turns[2] > 0.0:
        turns[2] += 1.0
    if turns[3] > 0.0:
        turns[3] += 1.0
    side = 1.0 if strength > 0.0 else 2.0
    turns[1] = 0.0 if side == turns[0] or strength != strength else turns[1] + 1.0
    if turns[1] >= TURN_CLOSES:
        if turns[0] > 0.0:
            turns[3], turns[2] = turns[2], 1.0
        turns[0], turns[1] = side, 0.0
    return bool(0.0 < turns[3] <= bars)


@compiled
def _trend_vote(x: FloatArray, confirmed: int, choppy: bool, settings: FloatArray) -> int:
    strength, move, move_rank, fast = x[_STRENGTH], x[_MOVE], x[_MOVE_RANK], settings[_FAST]
    if x[_DOUBLE_RANK] != x[_DOUBLE_RANK] or strength != strength or move_rank != move_rank:
        return UNKNOWN
    direction = UP if strength > 0.0 else DOWN
    if choppy:
        return direction if x[_TREND_RANK] >= settings[_STRONG] else SIDEWAYS
    if x[_DOUBLE_RANK] >= settings[_WEAK]:
        return direction
    # A weak trend on a fast way through zero is in transition: it has no vote until it points away from zero.
    away = move * strength > 0.0
    if move_rank < fast or move_rank > 1.0 - fast:
        return direction if away else TRANSITION
    return TRANSITION if away and confirmed == direction else SIDEWAYS


@compiled
def _band_vote(rank: float, low: float, high: float, extreme: float) -> int:
    if rank != rank:
        return UNKNOWN
    if rank < low:
        return LOW
    if rank < high:
        return MID
    return HIGH if rank < extreme else EXTREME


@compiled
def _structure(x: FloatArray, settings: FloatArray) -> int:
    if x[_CLOSE] > x[_HIGHEST]:
        return BREAKOUT
    if x[_CLOSE] < x[_LOWEST]:
        return BREAKDOWN
    if x[_BANDWIDTH_RANK] < settings[_COMPRESSED]:
        return COMPRESSION
    if x[_RANGE_RANK] > settings[_EXPANDED]:
        return EXPANSION
    stretch, tail = x[_STRETCH_RANK], settings[_STRETCHED]
    if x[_TREND_RANK] < settings[_STRONG] and (stretch < tail or stretch > 1.0 - tail):
        return MEAN_REVERTING
    return NEUTRAL


@compiled
def _record(votes: FloatArray, vote: int) -> None:
    position = int(votes[0])
    votes[1 + position] = vote + 1 if vote >= 0 else 0
    votes[0] = (position + 1) % VOTES


@compiled
def _agreeing(votes: FloatArray, vote: int, last: int) -> int:
    position, count = int(votes[0]), 0
    for back in range(1, last + 1):
        count += votes[1 + (position - back) % VOTES] == vote + 1
    return count


@compiled
def _confirm(label: FloatArray, vote: int, rule: FloatArray, dwell: float) -> int:
    # Records the vote; changes the label when rule[0] of the last rule[1] votes agree and the dwell is over.
    _record(label[2:], vote)
    label[1] += 1.0
    if vote == UNKNOWN:
        return UNKNOWN_INPUT
    if vote == TRANSITION:
        return UNCONFIRMED
    if label[0] == vote + 1:
        return UNCHANGED
    if _agreeing(label[2:], vote, int(rule[1])) < rule[0]:
        return UNCONFIRMED
    if label[1] <= dwell:
        return DWELLING
    label[0], label[1] = vote + 1, 0.0
    return CHANGED


@compiled
def _shock(x: FloatArray, latch: FloatArray, settings: FloatArray) -> bool:
    # Holds from the first extreme close until volatility is below its level then and below the high band.
    if latch[0] == 0.0:
        if not (x[_VOLATILITY_RANK] >= settings[_EXTREME_BAND] and x[_REDUCED_RANK] > settings[_SHOCK]):
            return False
        latch[0], latch[1] = 1.0, x[_VOLATILITY]
        for k in range(2, _LABEL_CELLS):
            latch[k] = 0.0
        return True
    calm = x[_VOLATILITY_RANK] < settings[_HIGH_BAND] and x[_VOLATILITY] < latch[1]
    _record(latch[2:], 1 if calm else 0)
    if _agreeing(latch[2:], 1, int(settings[_CONFIRM_OF])) >= settings[_CONFIRM]:
        latch[0] = 0.0
    return False


@compiled
def _warm(x: FloatArray, kept: FloatArray) -> bool:
    # Ranks are kept as value + 1, so that zero means: never known.
    known = 0
    for r in range(RANKS):
        if x[r] == x[r]:
            kept[r] = x[r] + 1.0
        known += kept[r] > 0.0
    if known == RANKS - 1 and kept[_VOLUME_RANK] == 0.0:  # bars of unknown volume: it is in the middle
        kept[_VOLUME_RANK] = 1.5
        return True
    return known == RANKS


@compiled
def _evaluate(x: FloatArray, settings: FloatArray, state: FloatArray, code: CodeArray) -> None:
    trend, band, latch = state[:_LABEL_CELLS], state[_LABEL_CELLS : 2 * _LABEL_CELLS], state[_LATCH:]
    choppy = _is_choppy(x[_STRENGTH], state[_TURNS:], settings[_CHOP_BARS])
    vote = _trend_vote(x, int(trend[0]) - 1, choppy, settings)
    band_vote = _band_vote(
        x[_VOLATILITY_RANK], settings[_LOW_BAND], settings[_HIGH_BAND], settings[_EXTREME_BAND]
    )
    shock = _shock(x, latch, settings)
    if trend[0] == 0.0:
        _start(trend, vote if vote >= 0 else SIDEWAYS)
        _start(band, band_vote if band_vote >= 0 else MID)
        code[0], code[1], code[6] = trend[0] - 1, band[0] - 1, INITIAL
        return
    rule = _SIDEWAYS_CONFIRM if vote == SIDEWAYS else _CONFIRM
    trend_reason = _confirm(trend, vote, settings[rule:], settings[_DWELL])
    band_reason = _confirm(band, band_vote, settings[_CONFIRM:], settings[_DWELL])
    code[0], code[1] = trend[0] - 1, band[0] - 1
    code[3], code[4], code[5] = trend_reason == CHANGED, band_reason == CHANGED, shock
    reason = max(trend_reason, BAND_SHIFTED if band_reason == CHANGED else band_reason)
    code[6] = SHOCK if shock else reason


@compiled
def _start(label: FloatArray, code: int) -> None:
    label[0] = code + 1
    _record(label[2:], code)


@compiled
def _bar(x: FloatArray, settings: FloatArray, state: FloatArray, code: CodeArray, ranks: FloatArray) -> None:
    kept = state[_KEPT:]
    warm = _warm(x, kept)
    for r in range(ranks.size):
        ranks[r] = kept[r] - 1.0 if warm else np.nan
    for k in range(code.size):
        code[k] = 0 if warm or k >= LABELS else -1
    if warm:
        code[2] = _structure(x, settings)
        _evaluate(x, settings, state, code)
    else:
        code[6] = WARMING_UP


@entry_point
def extend(
    numbers: FloatArray,
    read: IntArray,
    present: BoolArray,
    s: int,
    start: int,
    stop: int,
    settings: FloatArray,
    state: FloatArray,
    x: FloatArray,
    code: CodeArray,
    labels: tuple[CodeArray, CodeArray, CodeArray],
    events: tuple[FlagArray, FlagArray, FlagArray, FlagArray],
    reason: CodeArray,
    ranks: FloatArray,
) -> None:
    """Evaluate the regime on the rows start..stop of one symbol; an absent bar carries what was in force.

    Args:
        numbers: float64 (K, >= T), finished columns.
        read: int64 (15,), index of the column of each of `regime.FEATURES_READ`.
        present: bool (T, S).
        s: symbol index.
        start: first row.
        stop: the row behind the last.
        settings: float64 (16,), `RegimeSettings.values()`.
        state: float64 (STATE_SIZE,), as left by the row before `start`; changed in place.
        x: float64 (15,), scratch.
        code: int8 (7,), scratch.
        labels: int8 (>= T, S) each, written: trend, volatility, structure.
        events: uint8 (>= T, S) each, written: trend change, band shift, shock, and the three as bits.
        reason: int8 (>= T, S), written.
        ranks: float64 (>= T, S, 5), written: the fingerprint.
    """
    for t in range(start, stop):
        if present[t, s]:
            for k in range(read.size):
                x[k] = numbers[read[k], t]
            _bar(x, settings, state, code, ranks[t, s])
        else:
            for k in range(code.size):
                code[k] = 0 if k >= LABELS else (labels[k][t - 1, s] if t > 0 else -1)
            for r in range(ranks.shape[2]):
                ranks[t, s, r] = ranks[t - 1, s, r] if t > 0 else np.nan
        for k in range(LABELS):
            labels[k][t, s] = code[k]
            events[k][t, s] = code[LABELS + k]
        events[3][t, s] = code[3] | code[4] << 1 | code[5] << 2
        reason[t, s] = code[6]
