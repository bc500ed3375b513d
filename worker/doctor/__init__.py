"""What `thinktwice doctor` examines, and the machine and software that a run records."""
