# mypy: ignore-errors
"""The crossing rule in nautilus_trader: a market order with a bracket, and a close when time is up.

Hedging accounts, because netting ones slow down as closed trades pile up. Commissions are charged on a
USD account with the same rate for makers and takers unless the job gives another one for makers.
"""

from decimal import Decimal

import pandas as pd
from job import run
from nautilus_trader.backtest.engine import BacktestEngine, BacktestEngineConfig
from nautilus_trader.config import LoggingConfig, RiskEngineConfig
from nautilus_trader.model.currencies import USD
from nautilus_trader.model.data import Bar, BarType
from nautilus_trader.model.enums import AccountType, OmsType, OrderSide, TimeInForce
from nautilus_trader.model.identifiers import InstrumentId, Symbol, Venue
from nautilus_trader.model.instruments import Equity
from nautilus_trader.model.objects import Money, Price, Quantity
from nautilus_trader.trading.config import StrategyConfig
from nautilus_trader.trading.strategy import Strategy

VENUE = Venue("SIM")
MINUTE_NS = 60_000_000_000
ONE = Quantity.from_int(1)


class Crossing(Strategy):
    """One bracket at a time in one instrument."""

    def __init__(self, job, s, instrument, bar_type):
        super().__init__(StrategyConfig(order_id_tag=f"{s:03d}"))
        self.instrument, self.bar_type = instrument, bar_type
        self.crossed = job.crossed(s).tolist()
        self.stop_pct, self.target_pct, self.time_stop = job.stop_pct, job.target_pct, job.time_stop
        self.row = -1
        self.entered = -1

    def on_start(self):
        """Ask for the bars."""
        self.subscribe_bars(self.bar_type)

    def on_bar(self, bar):
        """One closed bar."""
        self.row += 1
        held = not self.portfolio.is_flat(self.instrument.id)
        if held and self.row - self.entered >= self.time_stop:
            self.cancel_all_orders(self.instrument.id)
            self.close_all_positions(self.instrument.id)
            held = False  # the close is under way, and the same bar may signal the next entry
        if not held and self.crossed[self.row]:
            self.entered = self.row
            close = bar.close.as_double()
            self.submit_order_list(
                self.order_factory.bracket(
                    instrument_id=self.instrument.id,
                    order_side=OrderSide.BUY,
                    quantity=ONE,
                    sl_trigger_price=self.instrument.make_price(close * (1.0 - self.stop_pct)),
                    tp_price=self.instrument.make_price(close * (1.0 + self.target_pct)),
                    tp_post_only=False,
                    time_in_force=TimeInForce.GTC,
                )
            )


def _instrument(job, s):
    maker = job.settings["maker_fee_bps"] / 1e4
    return Equity(
        instrument_id=InstrumentId(Symbol(f"S{s}"), VENUE),
        raw_symbol=Symbol(f"S{s}"),
        currency=USD,
        price_precision=2,
        price_increment=Price(0.01, precision=2),
        lot_size=ONE,
        ts_event=0,
        ts_init=0,
        taker_fee=Decimal(str(job.fee)),
        maker_fee=Decimal(str(maker)),
    )


def _bars(job, s, bar_type):
    columns = [[Price(x, 2) for x in job.column(name, s)] for name in ("open", "high", "low", "close")]
    closed = (job.arrays["times"] + MINUTE_NS).tolist()
    volume = Quantity.from_int(1_000_000)
    return [
        Bar(bar_type, o, h, low, c, volume, at, at) for o, h, low, c, at in zip(*columns, closed, strict=True)
    ]


def prepare(job):
    """An engine with venue, instruments and strategies, and the bars as its own objects."""
    engine = BacktestEngine(
        BacktestEngineConfig(
            logging=LoggingConfig(bypass_logging=True),
            risk_engine=RiskEngineConfig(bypass=True),
            run_analysis=False,
        )
    )
    engine.add_venue(
        venue=VENUE,
        oms_type=OmsType.HEDGING,
        account_type=AccountType.MARGIN,
        base_currency=USD,
        starting_balances=[Money(1_000_000_000, USD)],
        default_leverage=Decimal(1),
        bar_adaptive_high_low_ordering=bool(job.settings.get("adaptive", False)),
    )
    data = []
    for s in range(job.symbols):
        instrument = _instrument(job, s)
        bar_type = BarType.from_str(f"{instrument.id}-1-MINUTE-LAST-EXTERNAL")
        engine.add_instrument(instrument)
        engine.add_strategy(Crossing(job, s, instrument, bar_type))
        data.append(_bars(job, s, bar_type))
    return engine, data


def trade(job, prepared):
    """Sort the bars in and run."""
    engine, data = prepared
    for bars in data:
        engine.add_data(bars)
    engine.run()
    return engine


def read(job, engine):
    """Rows of the trade list; times are the closes of bars."""
    rows = {int(at) + MINUTE_NS: row for row, at in enumerate(job.arrays["times"])}
    found = []
    for position in engine.cache.positions_closed():
        fees = sum(fee.as_double() for fee in position.commissions())
        found.append(
            (int(str(position.instrument_id.symbol)[1:]), rows[position.ts_opened], rows[position.ts_closed],
             position.avg_px_open, position.avg_px_close, fees, position.realized_pnl.as_double())
        )  # fmt: skip
    return found


if __name__ == "__main__":
    pd.set_option("mode.copy_on_write", True)
    run("nautilus_trader", prepare, trade, read)
