"""Worlds of bars with known truth: whole sessions with the slow loop on and off on the same bars."""
