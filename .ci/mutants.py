"""Change the package in small ways, one at a time, and print the changes that no test of the changed room notices.

Usage: python .ci/mutants.py [--sample 20] [--seed 1] [--processes 2] [ROOM ...]

A room is a folder of the package. The working tree stays as it is: all happens in copies of it.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import copy
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from py_compile import PycInvalidationMode
from queue import SimpleQueue
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
PACKAGE = Path("airflow_provider_anaplat")
# Where a room has tests, besides its folder of tests/unit.
TESTS_BESIDES = {
    "access": ["tests/unit/operators/test_access.py", "tests/unit/operators/test_access_changes.py"],
    "rows": ["tests/unit/operators/test_if_unchanged.py", "tests/unit/operators/test_cards.py"],
    "sql": ["tests/integration/sql"],
    "transfers": ["tests/integration/sql"],
    "datasets": [f"tests/unit/operators/test_{of}.py" for of in ("datasets", "refresh", "schema")],
    "triggers": ["tests/unit/sensors"],
    "users": ["tests/unit/operators/test_users.py"],
}
PATIENCE = 4  # times what the unmutated tests take; a mutant that takes longer is killed
LEAST_PATIENCE = 60.0  # seconds
NOT_COPIED = shutil.ignore_patterns(".*", "__pycache__", "_build", "dist")

OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.LShift: ast.RShift, ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr,
    ast.Break: ast.Continue, ast.Continue: ast.Break,
}  # fmt: skip


def _other_constant(node: ast.Constant) -> Iterator[ast.AST]:
    if isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node.value, int):
        yield ast.Constant(node.value + 1)


def _turned_round(node: ast.If | ast.IfExp | ast.While) -> Iterator[ast.AST]:
    if not isinstance(node.test, ast.Compare | ast.UnaryOp | ast.Constant):  # they have mutations of their own
        turned = copy.copy(node)
        turned.test = ast.UnaryOp(ast.Not(), node.test)
        yield turned


# What may stand in the place of a node, by its kind.
MUTATIONS: dict[type[ast.AST], Callable[[Any], Iterable[ast.AST]]] = {
    ast.Constant: _other_constant,
    ast.If: _turned_round,
    ast.IfExp: _turned_round,
    ast.While: _turned_round,
    ast.UnaryOp: lambda node: [node.operand] if isinstance(node.op, ast.Not) else [],
    ast.Return: lambda node: [ast.Return(ast.Constant(None))] if node.value else [],
    ast.Raise: lambda _: [ast.Pass()],
    ast.Expr: lambda node: [ast.Pass()] if isinstance(node.value, ast.Call | ast.Await) else [],
}

# Types, and what says the same without; and calls whose arguments people read.
UNTOUCHED_FIELDS = {"annotation", "returns", "decorator_list", "bases"}
UNTOUCHED = re.compile(
    r"if TYPE_CHECKING|__all__ |\w+: TypeAlias|class \w+\((.*\b)?Protocol\b|raise NotImplementedError|return None"
)
LOGS = {"debug", "info", "warning", "error", "exception"}


class Mutant(NamedTuple):
    """What a node's field, or a place in the list there, would hold instead."""

    path: Path
    tree: ast.Module
    parent: ast.AST
    field: str
    place: int | None
    line: int
    new: ast.AST

    def texts(self) -> tuple[str, str]:
        """Return the module without and with the change, both without comments."""
        before, old = ast.unparse(self.tree), getattr(self.parent, self.field)
        new = self.new if self.place is None else [*old[: self.place], self.new, *old[self.place + 1 :]]
        setattr(self.parent, self.field, new)
        after = ast.unparse(self.tree)
        setattr(self.parent, self.field, old)
        return before, after

    def __str__(self) -> str:
        """Say where it is, and the line before and after."""
        before, after = self.texts()
        lines = zip(before.splitlines(), after.splitlines(), strict=True)
        old, new = next((old.strip(), new.strip()) for old, new in lines if old != new)
        return f"{PACKAGE / self.path}:{self.line}: {old}  ->  {new}"


def is_untouched(node: ast.AST) -> bool:
    """Tell whether a node is left as it is, with all below it."""
    return isinstance(node, ast.stmt) and UNTOUCHED.match(ast.unparse(node)) is not None


def is_only_read(node: ast.AST) -> bool:
    """Tell whether all below a node is for people: the text of an error or of a log's line."""
    call = node.value if isinstance(node, ast.Expr) else node
    logs = isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in LOGS
    return logs or isinstance(node, ast.Raise)


def others(node: ast.AST) -> Iterable[ast.AST]:
    """Return what may stand in the place of a node."""
    if type(node) in OPERATORS:
        return [OPERATORS[type(node)]()]
    return MUTATIONS[type(node)](node) if type(node) in MUTATIONS else []


def mutants_in(path: Path, tree: ast.Module, parent: ast.AST, line: int = 1) -> Iterator[Mutant]:
    """Yield all mutants below a node of a module."""
    for field, value in ast.iter_fields(parent):
        if field in UNTOUCHED_FIELDS or (isinstance(parent, ast.ClassDef) and field == "keywords"):
            continue
        many = isinstance(value, list)
        for place, node in enumerate(value if many else [value]):
            if not isinstance(node, ast.AST) or is_untouched(node):
                continue
            at = getattr(node, "lineno", line)
            for new in others(node):
                yield Mutant(path, tree, parent, field, place if many else None, at, new)
            if not is_only_read(node):
                yield from mutants_in(path, tree, node, at)


def drawn(room: str, sample: int, seed: int) -> list[Mutant]:
    """Draw some of a room's mutants: the same ones for a seed, whatever other rooms are asked for."""
    found: list[Mutant] = []
    for path in sorted((ROOT / PACKAGE / room).rglob("*.py")):
        tree = ast.parse(path.read_text())
        found += mutants_in(path.relative_to(ROOT / PACKAGE), tree, tree)
    chosen = random.Random(f"{seed} {room}").sample(found, min(sample, len(found)))
    return sorted(chosen, key=lambda mutant: (mutant.path, mutant.line))


def tests_of(tree: Path, module: Path) -> list[str]:
    """Return a tree's files of tests of a module's room, or of a room, the module's own first."""
    room = module.parts[0]
    files: list[Path] = []
    for place in (f"tests/unit/{room}", *TESTS_BESIDES.get(room, [])):
        files += [tree / place] if place.endswith(".py") else sorted((tree / place).rglob("test_*.py"))
    files.sort(key=lambda file: file.name != f"test_{module.stem}.py")
    return [str(file.relative_to(tree)) for file in files]


def passes(tree: Path, tests: list[str], patience: float | None) -> bool:
    """Run tests in a copy, and tell whether all passed in time; what they printed is in its file ``printed``."""
    temporary = tree / "tmp"
    temporary.mkdir(exist_ok=True)
    options = ["-x", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=1"]
    environment = os.environ | {"PYTHONPATH": str(tree), "TMPDIR": str(temporary)}
    with (tree / "printed").open("w") as printed:
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *options, *tests],
            cwd=tree, env=environment, stdout=printed, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            return process.wait(patience) == 0
        except subprocess.TimeoutExpired:
            return False
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            shutil.rmtree(temporary, ignore_errors=True)


def survives(path: Path, text: str, free: SimpleQueue[Path], patience: float) -> bool:
    """Run the tests of a module's room with another text of the module, in a copy that is free."""
    tree = free.get()
    changed = tree / PACKAGE / path
    before = changed.read_text()
    changed.write_text(text)
    try:
        return passes(tree, tests_of(tree, path), patience)
    finally:
        changed.write_text(before)
        free.put(tree)


def patience_of(room: str, tree: Path) -> float:
    """Return how many seconds a room's tests may take, once they have passed without a change."""
    began = time.monotonic()
    if not passes(tree, tests_of(tree, Path(room)), None):
        sys.exit(f"{(tree / 'printed').read_text()}\nThe tests of {room} fail without any change.")
    return max(LEAST_PATIENCE, PATIENCE * (time.monotonic() - began))


def main(rooms: list[str], sample: int, seed: int, processes: int) -> None:
    """Print each survivor, and how many there are in each room."""
    mutants = [mutant for room in rooms for mutant in drawn(room, sample, seed)]
    texts = [mutant.texts()[1] for mutant in mutants]
    made, killed = Counter(mutant.path.parts[0] for mutant in mutants), Counter[str]()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder, ThreadPoolExecutor(processes) as pool:
        free: SimpleQueue[Path] = SimpleQueue()
        for tree in (Path(folder) / str(number) for number in range(processes)):
            shutil.copytree(ROOT, tree, ignore=NOT_COPIED)
            # By hash: a change is seen even where time and size are those of before.
            compileall.compile_dir(tree / PACKAGE, quiet=2, invalidation_mode=PycInvalidationMode.CHECKED_HASH)
            free.put(tree)
        patience = {room: patience_of(room, tree) for room in rooms}
        waits = [patience[mutant.path.parts[0]] for mutant in mutants]
        runs = pool.map(lambda mutant, text, wait: survives(mutant.path, text, free, wait), mutants, texts, waits)
        for mutant, alive in zip(mutants, runs, strict=True):
            killed[mutant.path.parts[0]] += not alive
            if alive:
                print(mutant, flush=True)
    print(f"\n{'room':12}{'mutants':>9}{'killed':>8}{'survived':>10}{'percent':>9}")
    for room in [*rooms, "all"]:
        of, dead = (made.total(), killed.total()) if room == "all" else (made[room], killed[room])
        print(f"{room:12}{of:9}{dead:8}{of - dead:10}{dead / max(of, 1):9.0%}")


if __name__ == "__main__":
    folders = sorted(path.name for path in (ROOT / PACKAGE).iterdir() if path.is_dir())
    tested = [room for room in folders if tests_of(ROOT, Path(room))]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rooms", nargs="*", metavar="ROOM", help=", ".join(tested))
    parser.add_argument("--sample", type=int, default=20, help="mutants of each room")
    parser.add_argument("--seed", type=int, default=1, help="another seed draws other mutants")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="mutants side by side")
    asked = parser.parse_args()
    if unknown := set(asked.rooms) - set(tested):
        parser.error(f"{', '.join(sorted(unknown))}: no room with tests of its own; there are {', '.join(tested)}")
    main(asked.rooms or tested, asked.sample, asked.seed, asked.processes)
