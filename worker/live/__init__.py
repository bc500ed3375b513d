"""Paper trading: one row of bars at a time, durable row by row, started and recovered by the same path."""
