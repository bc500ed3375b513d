"""thinktwice as a library."""
