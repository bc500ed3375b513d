"""A run over recorded bars: made, stored, replayed, rebuilt, and why it did not trade."""
