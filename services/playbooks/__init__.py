"""Playbooks: files a trader edits, the registry of versions, their lifecycle and what to expect of them."""
