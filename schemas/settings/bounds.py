"""Bounds that settings of several sections share."""

MAX_COUNT = 1_000_000_000  # of bars, seconds or rows: far beyond use, far below what an integer holds
