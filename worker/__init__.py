"""What people start: command line, backtest runner, paper worker, feeds and console."""
