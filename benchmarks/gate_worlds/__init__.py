"""Worlds with known truth at the level of R: what the gate says where the answer is known."""
