"""Answers to questions about a run, written by rules from what the evidence tools brought, each row cited."""
