"""Outcomes laid out in calendar periods, and tracks of them, that several tests of the gate share."""

import numpy as np

from services.statistics.blocks import Trades, blocks_of
from services.statistics.calendar_units import DAY_NS
from services.statistics.track import Bounds, Company, Track

HOUR_NS = DAY_NS // 24
WEEK_NS = 7 * DAY_NS
MONDAY = 4 * DAY_NS  # 1970-01-05
BOUNDS = Bounds(-3.0, 4.0)


def weekly(outcomes) -> Trades:
    """Trades of weeks (w, k): entered one hour after the other from Monday on, out within the hour."""
    r = np.atleast_2d(np.asarray(outcomes, dtype=np.float64))
    weeks, size = r.shape
    entry = (MONDAY + np.arange(weeks)[:, None] * WEEK_NS + np.arange(size) * HOUR_NS).ravel()
    return Trades(entry, entry + HOUR_NS // 2, r.ravel())


def uneven(weeks) -> Trades:
    """The same for weeks of any numbers of trades; a week without a trade stays empty."""
    rows = [
        (MONDAY + week * WEEK_NS + place * HOUR_NS + 1, MONDAY + week * WEEK_NS + place * HOUR_NS, float(r))
        for week, found in enumerate(weeks)
        for place, r in enumerate(found)
    ]
    return Trades.of(rows)


def weekly_track(outcomes, reference=0.0, bounds=BOUNDS) -> Track:
    """The track of weeks (w, k)."""
    return Track(weekly(outcomes), "week", reference, bounds)


def uneven_track(weeks, reference=0.0, bounds=BOUNDS) -> Track:
    """The track of weeks of any numbers of trades."""
    return Track(uneven(weeks), "week", reference, bounds)


def account_of(*outcomes, reference=0.0) -> list[Track]:
    """Tracks of playbooks that trade weeks (w, k), each in the company of all."""
    trades = [weekly(found) for found in outcomes]
    names = ("entry_ns", "exit_ns", "r")
    pooled = Trades(*(np.concatenate([getattr(found, name) for found in trades]) for name in names))
    company = Company(blocks_of(pooled, "week", BOUNDS.low, BOUNDS.high))
    return [Track(found, "week", reference, BOUNDS, company=company) for found in trades]


def among_others(outcomes, reference=0.0) -> Track:
    """The track of weeks (w, k), where another playbook trades the same ones and shows no change."""
    others = t3(np.random.default_rng(97), (len(outcomes), 20))
    return account_of(outcomes, others, reference=reference)[0]


def t3(draw, shape):
    """Student's t with three degrees of freedom, of variance one."""
    return draw.standard_t(3, shape) / np.sqrt(3.0)


def bracket(draw, shape, win, mean=0.0):
    """Wins of `win` R and losses of 1R, moved to a mean."""
    return np.where(draw.random(shape) < 1.0 / (1.0 + win), win, -1.0) + mean


def alike_brackets(draw, runs, weeks, symbols, rho, win):
    """Brackets (runs, weeks, symbols) of mean zero whose symbols share a normal factor within a week."""
    from scipy.special import ndtri

    common = draw.standard_normal((runs, weeks, 1))
    own = draw.standard_normal((runs, weeks, symbols))
    latent = np.sqrt(rho) * common + np.sqrt(1.0 - rho) * own
    return np.where(latent > ndtri(win / (1.0 + win)), win, -1.0)
