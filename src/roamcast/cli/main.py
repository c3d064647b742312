"""The command `roamcast`: its verbs, and how errors are shown.

The rule this file owns: a wrong request gives one message on stderr, `error: …`, and exit code 2, never a traceback; a
traceback is a bug. A run that fails exits with 1, an interrupt with 130.
"""

import importlib
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

from roamcast.config.errors import nearest
from roamcast.errors import RoamcastError
from roamcast.extras import not_installed

GROUPS: Final = {
    "Simulate": {
        "scenario": "Explain scenarios, print an example, or check a file.",
        "protocols": "List the protocols, or explain the parameters of one.",
        "run": "Simulate a scenario, and print a summary.",
        "compile": "Compile the simulator and the measures for this machine.",
        "lab": "Run a scenario on real node processes, in real time.",
        "traces": "Import, describe and export recorded movement and contacts.",
    },
    "Compare": {
        "campaign": "Run experiments, measure them, and write a report.",
        "choose": "Find the cheapest protocol that reaches a goal on a network.",
        "papers": "Reproduce papers' experiments, and judge their claims.",
    },
    "Look at results": {
        "report": "Write the report of a campaign.",
        "figure": "Draw one figure of a campaign, for a paper.",
        "table": "Print a campaign's numbers as a table for a paper.",
        "replay": "Write a page that plays a run, or two side by side.",
        "why": "Explain why an event did not reach a node.",
        "ages": "Show how much arrived by each age, and how much could have.",
        "measures": "List the measures, by topic: what each is, and its unit.",
        "measure": "Compute measures of a campaign.",
        "sql": "Query a campaign with Spark's SQL.",
        "watch": "Show a campaign at work, or a network of live nodes.",
        "verify": "Check the facts of a campaign for damage.",
        "upload": "Copy a campaign to an object store or another folder.",
    },
    "Run on devices": {
        "doctor": "Say what this machine lacks: for a node, for simulations and for campaigns.",
        "key": "Create a network's key, and say who its members are.",
        "node": "Run a node on this device.",
        "pub": "Publish an event.",
        "sub": "Subscribe: print matching events until interrupted.",
        "status": "Show a node's neighbours, subscriptions, tables and counters.",
        "bridge": "Connect a node with an MQTT broker, both ways.",
    },
}
"""The verbs as the help lists them: the first sentence of each, so that the list needs none of their modules. Each verb
is the command of the same name in the module of the same name."""
VERBS: Final = tuple(verb for verbs in GROUPS.values() for verb in verbs)
_SETTINGS: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 100, "show_default": True}
INTERRUPTED = 130
"""128 plus the number of SIGINT, as in shells."""


class Refusal(click.ClickException):
    """Shows a `RoamcastError` to the user."""

    def __init__(self, problem: RoamcastError) -> None:
        super().__init__(str(problem))
        self.exit_code = problem.exit_code  # type: ignore[misc]  # click declares it on the class

    def show(self, file: Any = None) -> None:  # noqa: ANN401  # as click has it
        click.echo(f"error: {self.message}", err=True)


def _absent(name: str, missing: ModuleNotFoundError) -> click.Command:
    """Stands for a verb whose libraries are not installed: it says how to install them."""
    problem = not_installed(f"roamcast {name}", missing)

    def refuse() -> None:
        raise problem

    settings = {"ignore_unknown_options": True, "allow_extra_args": True}
    return click.Command(name, callback=refuse, context_settings=settings)


class Verbs(click.Group):
    """A group that applies the rule above to all its verbs, and loads a verb when it is used.

    A node on a small device does not load the simulator and the measures: they would take half of its memory.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(VERBS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in VERBS:
            return None
        try:
            module = importlib.import_module(f"roamcast.cli.{name}")
        except ModuleNotFoundError as missing:
            return _absent(name, missing)
        return next(one for one in vars(module).values() if isinstance(one, click.Command) and one.name == name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, verbs in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl(list(verbs.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in VERBS and not args[0].startswith("-"):
            close = nearest(args[0], VERBS)
            ctx.fail(f"there is no command {args[0]!r}" + (f"; did you mean {close!r}?" if close else ""))
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Completes names only: click would load every verb for its help, which takes seconds."""
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        return [CompletionItem(name) for name in names] or super().shell_complete(ctx, incomplete)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401  # as click has it
        try:
            return super().invoke(ctx)
        except RoamcastError as problem:
            raise Refusal(problem) from problem
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            ctx.exit(INTERRUPTED)


@click.group(cls=Verbs, context_settings=_SETTINGS)
@click.version_option(package_name="roamcast", prog_name="roamcast")
def main() -> None:
    """Content-based publish/subscribe for mobile ad hoc networks: simulate it, measure it, run it on devices.

    \b
    Examples:
      roamcast scenario --example > first.toml    a scenario to start from
      roamcast run first.toml                     run it; facts go to out/, a summary is printed
      roamcast run first.toml --set radio.range=100 --seed 7
      roamcast run first.toml --replay            and a page that plays it
      roamcast why out/flooding-1 --missed        why events did not get there
      roamcast ages out/flooding-1                how much arrived by when, and how much could have
      roamcast campaign many.toml                 run and measure many points and seeds, on all cores
      roamcast choose first.toml                  which protocol for this network?
      roamcast figure out/many delivery --width 3.5in    one of its figures, for a paper
      roamcast table out/many --format latex      its numbers, with the best in bold
      roamcast papers hint --quick                reproduce a paper's figures and test its claims
      roamcast traces import rides.fcd.xml.gz --out rides.trace    import recorded movement
      roamcast scenario --explain                 every field of a scenario
      roamcast protocols flooding                 a protocol's parameters
      roamcast lab first.toml                     the same scenario on real node processes, in real time
      roamcast key new network.key                create the key of a network of devices
      roamcast node --id 7 --key network.key      start a node on this device
      roamcast sub 'price < 20'                   subscribe: print matching events
      roamcast pub --type offer price=12.5        publish an event

    \b
    Shell completion for bash (zsh and fish likewise):
      eval "$(_ROAMCAST_COMPLETE=bash_source roamcast)"
    """
