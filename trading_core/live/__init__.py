"""Bars that grow, and the step that trades a new row: the kernel of a backtest, one row at a time."""
