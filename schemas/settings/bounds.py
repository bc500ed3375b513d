"""Bounds that settings of several sections share, or contracts with them."""

LARGEST_QUOTA = 20  # cases that a bucket of the memory may be asked for
MAX_COUNT = 1_000_000_000  # of bars, seconds or rows: far beyond use, far below what an integer holds
