"""`python -m worker.cli`: the same command as `thinktwice`, where the script is not on the path."""

from worker.operations.start import main

if __name__ == "__main__":
    main()
