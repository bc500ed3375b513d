"""Contrastive memory of resolved episodes, read point in time."""
