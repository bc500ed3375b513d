"""Typed claims: looked up in a run, refused where they are not so, and written in words by code."""
