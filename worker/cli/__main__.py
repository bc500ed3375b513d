"""`python -m worker.cli`: the same command as `thinktwice`, where the script is not on the path."""

from worker.cli import app

if __name__ == "__main__":
    app()
