"""Where secrets come from, and how they stay out of what is written."""
