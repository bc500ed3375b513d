"""Texts that are checked before they are kept: what they claim, whether it holds, and how they get better."""
