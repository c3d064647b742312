"""Which of roamcast's own modules a run executes: those of the simulator and of its protocol, and what they import.

The rules this file owns:

* Imports are followed from the simulator and from the module that has the protocol's broker. The catalogue of protocols
  only names them, so an edit of one protocol leaves the runs of the others what they were. The catalogue of measures is
  not followed, since it imports all of them, nor is the package itself, which only names things.
* Sources are read when this module is imported, not when they are needed: so they match the code that this process has
  loaded, even if someone edits a file later.
"""

import ast
import functools
import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).parents[2]
_SIMULATOR: Final = "roamcast.sim.run"
_NOT_FOLLOWED: Final = frozenset({"roamcast", "roamcast.analysis.measures.catalogue"})


def _module(path: Path) -> str:
    parts = path.relative_to(_ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


_SOURCES: Final = {_module(path): path.read_bytes() for path in sorted(_ROOT.rglob("*.py"))}


def imports(source: bytes) -> Iterator[str]:
    """The modules of roamcast that a source imports, anywhere in it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        yield from (name for name in names if name in _SOURCES)


@functools.cache
def _imported(module: str) -> tuple[str, ...]:
    return () if module in _NOT_FOLLOWED else tuple(dict.fromkeys(imports(_SOURCES[module])))


def executed(first: Iterable[str]) -> list[str]:
    """The names of the simulator's modules, of these, and of all that they import."""
    return imported_by([_SIMULATOR, *first])


def imported_by(first: Iterable[str]) -> list[str]:
    """The names of these modules and of all that they import."""
    found: set[str] = set()
    waiting = list(first)
    while waiting:
        module = waiting.pop()
        if module not in found and module in _SOURCES:
            found.add(module)
            package = module.rpartition(".")[0]
            waiting += [*_imported(module), package]  # a package's own file runs too
    return sorted(found)


def digests_of(modules: Iterable[str]) -> dict[str, str]:
    return {module: _digest(module) for module in modules}


@functools.cache
def _digest(module: str) -> str:
    return hashlib.sha256(_SOURCES[module]).hexdigest()
