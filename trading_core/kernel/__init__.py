"""The compiled kernel: what one bar means for every symbol and for the portfolio.

`loop.advance` is the one door; `records` are the layouts it works on, `fresh` makes them. The layouts alone
load no compiler.
"""
