"""Families of momentum: changes of the close, MACD, RSI, stochastics and their kin."""

from trading_core.features import nodes as f
from trading_core.features.families.family import INFINITY, PERCENT, FeatureFamily
from trading_core.features.formulas import three_prices, typical_price
from trading_core.features.nodes import CLOSE, HIGH, LOW, Node

LAMBERT = 0.015  # Lambert (1980): the factor that puts most CCI values within -100..100


def _moves(n: int) -> tuple[Node, Node]:
    gains = f.wilder(f.positive(f.change(CLOSE)), n)
    losses = f.wilder(f.positive(f.scale(-1.0, f.change(CLOSE))), n)
    return gains, losses


def _rsi(n: int) -> Node:
    gains, losses = _moves(n)
    return f.scale(100.0, f.divide(gains, f.add(gains, losses)))


def _cmo(n: int) -> Node:
    gains, losses = _moves(n)
    return f.scale(100.0, f.divide(f.subtract(gains, losses), f.add(gains, losses)))


def _macd(fast: int, slow: int) -> Node:
    return f.subtract(f.ema(CLOSE, fast, skip=slow - fast), f.ema(CLOSE, slow))


def _macd_signal(fast: int, slow: int, n: int) -> Node:
    return f.ema(_macd(fast, slow), n)


def _ppo(fast: int, slow: int) -> Node:
    slower = f.ema(CLOSE, slow)
    return f.scale(100.0, f.divide(f.subtract(f.ema(CLOSE, fast), slower), slower))


def _place(x: Node, high: Node, low: Node) -> Node:
    return f.scale(100.0, f.divide(f.subtract(x, low), f.subtract(high, low)))


def _stochastic(n: int) -> Node:
    return _place(CLOSE, f.highest(HIGH, n, before=False), f.lowest(LOW, n, before=False))


def _stochastic_d(n: int, k: int, d: int) -> Node:
    return f.mean(f.mean(_stochastic(n), k), d)


def _stochastic_rsi(n: int) -> Node:
    return _place(_rsi(n), f.highest(_rsi(n), n, before=False), f.lowest(_rsi(n), n, before=False))


def _williams_r(n: int) -> Node:
    high, low = f.highest(HIGH, n, before=False), f.lowest(LOW, n, before=False)
    return f.scale(-100.0, f.divide(f.subtract(high, CLOSE), f.subtract(high, low)))


def _cci(n: int) -> Node:
    price = typical_price()
    return f.divide(f.subtract(price, f.mean(price, n)), f.scale(LAMBERT, f.mean_deviation(price, n)))


def _trix(n: int) -> Node:
    smooth = f.ema(f.ema(f.ema(CLOSE, n), n), n)
    return f.scale(100.0, f.divide(f.change(smooth), f.lag(smooth, 1)))


def _mfi(n: int) -> Node:
    # The direction is read from three times the price: the third of a sum rounds.
    change, flow = f.change(three_prices()), f.multiply(typical_price(), f.VOLUME)
    into = f.mean(f.multiply(flow, f.above_zero(change)), n)
    out_of = f.mean(f.multiply(flow, f.above_zero(f.scale(-1.0, change))), n)
    return f.scale(100.0, f.divide(into, f.add(into, out_of)))


FAMILIES = (
    FeatureFamily(
        "mom_N", lambda n: f.change(CLOSE, n), "price", "Momentum: change of the close over N bars.", (10,)
    ),
    FeatureFamily(
        "roc_N",
        lambda n: f.divide(f.change(CLOSE, n), f.lag(CLOSE, n)),
        "fraction",
        "Change of the close over N bars, as a fraction.",
        (10,),
        1,
        (-1.0, INFINITY),
    ),
    FeatureFamily(
        "macd_F_S",
        _macd,
        "price",
        "Fast less slow EMA, both seeded at the slow one's bar.",
        (12, 26),
        1,
        ascending=True,
    ),
    FeatureFamily(
        "macd_signal_F_S_N", _macd_signal, "price", "EMA of macd_F_S.", (12, 26, 9), 1, ascending=True
    ),
    FeatureFamily(
        "macd_histogram_F_S_N",
        lambda fast, slow, n: f.subtract(_macd(fast, slow), _macd_signal(fast, slow, n)),
        "price",
        "macd_F_S less its signal.",
        (12, 26, 9),
        1,
        ascending=True,
    ),
    FeatureFamily(
        "ppo_F_S",
        _ppo,
        "percent",
        "Percentage price oscillator: ema_F less ema_S, in percent of ema_S.",
        (12, 26),
        1,
        ascending=True,
    ),
    FeatureFamily("trix_N", _trix, "percent", "Change of the triple EMA over one bar, in percent.", (15,), 1),
    FeatureFamily("rsi_N", _rsi, "percent", "Wilder's RSI; unknown on a flat price.", (14,), 2, PERCENT),
    FeatureFamily(
        "cmo_N",
        _cmo,
        "percent",
        "Chande's momentum oscillator with Wilder's means; unknown on a flat price.",
        (14,),
        2,
        (-100.0, 100.0),
    ),
    FeatureFamily(
        "stochastic_N",
        _stochastic,
        "percent",
        "Close within the range of the last N bars, this one included.",
        (14,),
        1,
        PERCENT,
    ),
    FeatureFamily(
        "stochastic_k_N_K",
        lambda n, k: f.mean(_stochastic(n), k),
        "percent",
        "Slow %K: simple mean of K values of stochastic_N.",
        (14, 3),
        1,
        PERCENT,
    ),
    FeatureFamily(
        "stochastic_d_N_K_D",
        _stochastic_d,
        "percent",
        "Slow %D: simple mean of D values of stochastic_k_N_K.",
        (14, 3, 3),
        1,
        PERCENT,
    ),
    FeatureFamily(
        "stochastic_rsi_N",
        _stochastic_rsi,
        "percent",
        "rsi_N within its own range of the last N bars; unknown while that range is zero.",
        (14,),
        2,
        PERCENT,
    ),
    FeatureFamily(
        "williams_r_N",
        _williams_r,
        "percent",
        "Williams %R: -100 at the lowest low of the last N bars, 0 at their highest high.",
        (14,),
        1,
        (-100.0, 0.0),
    ),
    FeatureFamily(
        "cci_N",
        _cci,
        "ratio",
        "Commodity channel index of the typical price; unknown on a flat price.",
        (20,),
        2,
    ),
    FeatureFamily(
        "mfi_N",
        _mfi,
        "percent",
        "Money flow index; unknown while no money flowed.",
        (14,),
        1,
        PERCENT,
    ),
)
