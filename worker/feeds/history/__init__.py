"""Bars fetched from an exchange into a file, and checked there."""
