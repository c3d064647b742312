"""Options that several verbs share: each group reaches a verb as one argument."""

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import click

from roamcast.errors import ConfigError

F = TypeVar("F", bound=Callable[..., Any])

LOCAL: Final = "local[*,4]"
"""All cores of this machine, and four attempts for a task whose process dies."""
_MASTER: Final = re.compile(r"local(\[.*\])?|spark://.+|k8s://.+|yarn")


class _FilePath(click.Path):
    """A file, or a folder, by its path."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        return "FILE"


FILE: Final = _FilePath()


def gathered(argument: str, make: Callable[..., Any], *options: Callable[[Any], Any]) -> Callable[[F], F]:
    """A decorator that adds options to a verb; the verb gets what `make` makes of them as `argument`."""
    names = list(inspect.signature(make).parameters)

    def decorate(verb: F) -> F:
        @functools.wraps(verb)
        def with_options(*arguments: Any, **given: Any) -> Any:  # noqa: ANN401  # of the verb
            own = {name: given.pop(name) for name in names}
            return verb(*arguments, **{argument: make(**own)}, **given)

        decorated: Any = with_options
        for option in reversed(options):
            decorated = option(decorated)
        result: F = decorated
        return result

    return decorate


# --- Spark ----------------------------------------------------------------------------------------------------------


class SparkOptions(NamedTuple):
    """Where Spark runs, and its settings."""

    given: str | None
    conf: Mapping[str, str]

    @property
    def master(self) -> str:
        return self.given or LOCAL

    def session(self, name: str = "roamcast", *, heavy: bool = False) -> AbstractContextManager[Any]:
        from roamcast.pipeline.session import session  # Spark takes a second to import

        return session(self.master, self.conf, heavy=heavy, name=name)


def make_spark_options(master: str | None, settings: tuple[str, ...]) -> SparkOptions:
    """Refuses what Spark would answer with a stack trace of Java."""
    if master is not None and not _MASTER.fullmatch(master):
        raise ConfigError(f"--master {master}: expected spark://HOST:PORT, k8s://URL, yarn, or local[CORES]")
    conf = {}
    for text in settings:
        key, equals, value = text.partition("=")
        if not (key and equals):
            raise ConfigError(f"--conf {text}: expected K=V, such as spark.executor.memory=2g")
        conf[key] = value
    return SparkOptions(master, conf)


MASTER: Final = click.option(
    "--master", metavar="URL", help=f"URL of the Spark master.  [default: {LOCAL}, this machine]"
)
CONF: Final = click.option("--conf", "settings", multiple=True, metavar="K=V", help="A Spark setting. May be repeated.")
spark_options = gathered("spark", make_spark_options, MASTER, CONF)
