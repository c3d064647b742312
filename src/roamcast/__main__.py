"""`python -m roamcast`: the command, for where it is not installed."""

from roamcast.cli.main import main

if __name__ == "__main__":
    main(prog_name="roamcast")
