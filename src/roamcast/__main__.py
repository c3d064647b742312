"""`python -m roamcast`: the same as the command `roamcast`, for when that is not installed."""

from roamcast.cli.main import main

if __name__ == "__main__":
    main(prog_name="roamcast")
