"""The deterministic engine: arrays in, arrays and events out; no I/O, clock, randomness, database, model."""
