"""`roamcast compile`: compiles ahead of the first run what runs and measures would otherwise wait for."""

import click

from roamcast.analysis.compilation import load_kernels
from roamcast.cli.progress import say
from roamcast.sim.core.compilation import load_kernel


@click.command("compile")
def compile_() -> None:
    """Compile the simulator and the measures for this machine.

    They are kept beside the sources, or in $NUMBA_CACHE_DIR. What is not compiled yet, the first run compiles.
    """
    load_kernel(say)
    load_kernels(say)
    click.echo("the simulator and the measures are compiled")
