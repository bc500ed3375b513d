"""Many parameter sets at once, and what the search is worth."""
