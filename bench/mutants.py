"""`python -m bench.mutants`: small mistakes in the files that seal frames and refuse replays; do the tests see them?

Each mutant has one change: a comparison, an operator, a number, a truth value, an `and`, a `not`. It lives in a forked
process that runs the tests of these files until one fails. Those that survive are printed, with the reason why they are
harmless if it is known; the exit code is 1 if one has no reason. `python -m bench.mutants replay 40` begins with the
40th of one file.
"""

import ast
import contextlib
import copy
import io
import os
import resource
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

MODULES: Final = ("roamcast.live.link.frame", "roamcast.live.link.replay")
TESTS: Final = tuple(f"tests/live/link/test_{name}.py" for name in ("frame", "replay", "receiver"))
_NOT_NEGATIVE: Final = "counters are not negative: what is above -2 is above -1"
_BLOCK_BEFORE: Final = "the block before is written again, and all its counters are refused anyway"
HARMLESS: Final = {
    ("_CIPHERS: Final", "4096"): "how many ciphers are cached: making one again takes longer, nothing else",
    ("return sessions[0]", "0  ->  -1"): "without a key there is one session, the first and the last",
    ("WINDOW: Final", "1024"): "the size of the window: the tests hold for any",
    ("CAPACITY: Final", "16384"): "the size of the table: the tests hold for any",
    ("if ahead > 0:", "ahead > 0  ->  ahead >= 0"): "the counter at the mark is taken, so it is never new",
    ("if ahead > 0:", "0  ->  -1"): "the counter at the mark is taken, so it is never new",
    (
        "if ahead < WINDOW else 0",
        "ahead < WINDOW  ->  ahead <= WINDOW",
    ): "a shift by a whole window leaves nothing either",
    ("if ahead < WINDOW else 0", "0  ->  1"): "that bit is set in any case",
    ("self._doubted.get(session, -1)", "1  ->  2"): _NOT_NEGATIVE,
    ("self._doubted.pop(session, -1)", "1  ->  2"): _NOT_NEGATIVE,
    (
        "(upto + 1) // BLOCK - 1)",
        "1  ->  2",
    ): "a block that ends at `upto` is the same, and one too early is written twice",
    ("(upto + 1) // BLOCK - 1)", "upto + 1  ->  upto - 1"): _BLOCK_BEFORE,
    ("(upto + 1) // BLOCK - 1)", "1  ->  0"): _BLOCK_BEFORE,
}
"""By the line and the beginning of the change: why it is harmless."""
SECONDS: Final = 60
"""Seconds of CPU; catches a mutant that loops."""

_WARNINGS: Final = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
"""About modules that are loaded before, once for all mutants."""
_SWAPS: Final[dict[type, tuple[type, ...]]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Add,),
    ast.FloorDiv: (ast.Mult,),
    ast.LShift: (ast.RShift,),
    ast.RShift: (ast.LShift,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
    ast.And: (ast.Or,),
    ast.Or: (ast.And,),
}


def _changes(node: ast.AST) -> Iterator[ast.AST]:
    """Replacements for an AST node, each with one mistake."""
    if isinstance(node, ast.Compare):
        for swap in _SWAPS.get(type(node.ops[0]), ()):
            yield _with(node, "ops", [swap(), *node.ops[1:]])
        if len(node.ops) > 1:
            for swap in _SWAPS.get(type(node.ops[1]), ()):
                yield _with(node, "ops", [node.ops[0], swap(), *node.ops[2:]])
    elif isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign):
        for swap in _SWAPS.get(type(node.op), ()):
            yield _with(node, "op", swap())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield ast.Constant(not node.value)
        elif isinstance(node.value, int):
            yield ast.Constant(node.value + 1)
            yield ast.Constant(node.value - 1)


def _with(node: ast.AST, field: str, value: object) -> ast.AST:
    changed = copy.copy(node)
    setattr(changed, field, value)
    return changed


def mutants(tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    """The line, its original text, and the whole mutated source; annotations and docstrings are not mutated."""
    for parent in ast.walk(tree):
        for field, value in ast.iter_fields(parent):
            if field in ("annotation", "returns"):
                continue
            places = enumerate(value) if isinstance(value, list) else [(None, value)]
            for index, child in places:
                if not isinstance(child, ast.AST) or not hasattr(child, "lineno"):
                    continue
                for changed in _changes(child):
                    _put(parent, field, index, ast.fix_missing_locations(ast.copy_location(changed, child)))
                    yield child.lineno, f"{ast.unparse(child)}  ->  {ast.unparse(changed)}", ast.unparse(tree)
                    _put(parent, field, index, child)


def _put(parent: ast.AST, field: str, index: int | None, child: ast.AST) -> None:
    if index is None:
        setattr(parent, field, child)
    else:
        getattr(parent, field)[index] = child


def survives(module: str, source: str, file: str) -> bool:
    """Whether the tests pass with the module like this."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1] == 0
    try:  # the child does not come back
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        sys.meta_path.insert(0, _Mutated(module, source, file))
        nowhere = io.StringIO()
        with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
            failed = pytest.main(["-x", "-q", "-n0", "-p", "no:cacheprovider", *_WARNINGS, *TESTS])
        os._exit(1 if failed else 0)
    except BaseException:
        os._exit(1)


class _Mutated:
    """Imports the mutated source in place of one module."""

    def __init__(self, name: str, source: str, file: str) -> None:
        self._name, self._source, self._file = name, source, file

    def find_spec(self, name: str, path: object = None, target: object = None, /) -> ModuleSpec | None:
        if name != self._name:
            return None
        return ModuleSpec(name, self, origin=self._file)  # type: ignore[arg-type]  # it loads too, without the base class

    def create_module(self, spec: object) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self._source, self._file, "exec"), module.__dict__)


def _reason(line: str, change: str) -> str:
    """Why a change in a line is harmless; empty if unknown."""
    for (part, start), reason in HARMLESS.items():
        if part in line and change.startswith(start):
            return reason
    return ""


def run(names: tuple[str, ...] = MODULES, first: int = 1) -> int:
    for name in ("hypothesis.strategies", "xdist.plugin", "cryptography.x509", "roamcast.live.key"):
        import_module(name)
    alive, count = [], 0
    for module in names:
        spec = find_spec(module)
        assert spec is not None
        assert spec.origin is not None
        text = Path(spec.origin).read_text()
        tree, lines = ast.parse(text), text.splitlines()
        assert survives(module, ast.unparse(tree), spec.origin), "the tests must pass without a mistake"
        for line, words, source in islice(mutants(tree), first - 1, None):
            count += 1
            if survives(module, source, spec.origin):
                reason = _reason(lines[line - 1], words)
                alive.append(reason)
                print(f"  {Path(spec.origin).name}:{line}: {words}{f' ({reason})' if reason else ''}", flush=True)
            if count % 20 == 0:
                print(f"  … {count}", flush=True)
    print(
        f"mutants: {count} in {', '.join(names)}; {len(alive)} survive, {alive.count('')} of them for no known reason"
    )
    return 1 if "" in alive else 0


if __name__ == "__main__":
    asked = [word for word in sys.argv[1:] if not word.isdigit()]
    chosen = tuple(module for module in MODULES if module.rpartition(".")[2] in asked) or MODULES
    sys.exit(run(chosen, next((int(word) for word in sys.argv[1:] if word.isdigit()), 1)))
