"""The worth of each tier, measured: the same bars with and without it, and against a coin at its rate."""
