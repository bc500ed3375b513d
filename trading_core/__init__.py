"""The deterministic engine: arrays in, arrays and events out.

No I/O, clock, randomness, database or model.
"""
