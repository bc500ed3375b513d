"""Anytime-valid statistics of the slow loop: arrays in, numbers out; no clock, no I/O, no randomness."""
