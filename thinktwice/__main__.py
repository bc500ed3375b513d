"""`python -m thinktwice`: the same command as `thinktwice`, where the script is not on the path."""

from worker.start import main

if __name__ == "__main__":
    main()
