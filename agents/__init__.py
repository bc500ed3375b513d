"""Strategists, judges and language model adapters behind the protocols that services declare."""
