"""Savepoints: the state of a running graph of objects as text, and back into a graph that was wired anew."""
