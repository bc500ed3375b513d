"""The fast reflection on a plan that is given as a file."""
