"""Bars of an exchange, as they close and as they were."""
