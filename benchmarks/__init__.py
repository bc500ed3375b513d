"""Timings: ratios and CPU seconds, written to a page of the reference. Never part of the tests."""
