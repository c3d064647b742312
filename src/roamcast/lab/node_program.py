"""`python -m roamcast.lab.node_program`: the fork server of a lab, whose children are the program `roamcast`.

The one place in which the lab knows the command line, which lies above it: the layer check has this import by name, and
nothing imports this module.
"""

import sys

from roamcast.cli.main import main
from roamcast.lab.forkserver import serve

if __name__ == "__main__":
    serve(main, sys.argv[1:])
