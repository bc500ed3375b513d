"""Texts of others: files that somebody names, and the days that a text names."""
