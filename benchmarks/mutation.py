"""Mutation testing: small faults put into the mathematics, which the tests must notice.

    python benchmarks/mutation.py --write                  all mutants of all modules (hours)
    python benchmarks/mutation.py penalties --every 8      a sample of one module

The mutants are made by the operators of cosmic-ray. Compiled functions run as plain Python
(NUMBA_DISABLE_JIT), since compiling takes longer than the tests. Libraries are loaded once; every
mutant is a forked process that loads softsplit anew from a copy with one changed file and runs the
tests of that module up to the first failure. A mutant that hangs counts as noticed.

What became of a mutant is kept in build/mutation as soon as it is known, by the content of the
module: a run that was stopped goes on, and only survivors are tried again when there are new tests.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import importlib
import json
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ["NUMBA_DISABLE_JIT"] = "1"

from common import ROOT, keep, kept, markdown
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

PLACES = {
    "routing": "tree/routing.py",
    "tree_pass": "engines/tree_pass.py",
    "penalties": "problem/penalties.py",
    "leaves": "problem/leaves.py",
    "sparsity": "tree/sparsity.py",
    "strength_bound": "problem/strength_bound.py",
    "second_order": "ipopt/second_order.py",
}
"""Where the modules are in the package."""

TESTS = {name: [f"{path[:-3].replace('/', '/test_')}.py"] for name, path in PLACES.items()} | {
    "tree_pass": ["tree/test_routing.py"],
    "penalties": ["problem/test_penalties.py", "problem/test_prox.py"],
    "leaves": ["problem/test_constraints.py"],
    "second_order": ["ipopt/test_ipopt_derivatives.py"],
}
"""Tests that must notice; by default those with the name of the module."""

LEFT_OUT = ("RemoveDecorator", "VariableReplacer", "VariableInserter")
LIBRARIES = (
    "numpy", "scipy.optimize", "scipy.sparse", "sklearn", "pandas", "numba", "hypothesis", "pytest",
    "sklearn.utils.validation", "joblib", "threadpoolctl", "hypothesis.strategies",
)  # fmt: skip
LIMIT = 180
"""Seconds for the tests of one mutant."""

PASSED = 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("module", nargs="?", choices=TESTS)
    parser.add_argument("--every", type=int, default=1, help="try every so many-th mutant")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="mutants at a time")
    parser.add_argument("--journal", type=Path, default=ROOT / "build" / "mutation")
    parser.add_argument("--write", action="store_true", help="figures to docs/results/reliability")
    args = parser.parse_args()
    for name in LIBRARIES:
        importlib.import_module(name)
    rows = []
    for module in [args.module] if args.module else TESTS:
        rows.append(campaign(module, args))
        print(rows[-1], file=sys.stderr)
    if args.module:  # beside the others' figures
        others = {row["module"]: row for row in kept("mutation").get("modules", [])}
        others |= {row["module"]: row for row in rows}
        rows = [others[module] for module in TESTS if module in others]
    table = markdown(
        ["module", "mutants", "tried", "noticed", "of which by their time", "survived"],
        ([*list(row.values())[:5], len(row["survivors"])] for row in rows),
    )
    keep("mutation", {"modules": rows}, table, write=args.write)


@dataclass(frozen=True)
class Mutant:
    """One change of one module."""

    module: str
    operator: str
    occurrence: int

    @property
    def name(self) -> str:
        return f"{self.operator} {self.occurrence}"


def source_of(module: str) -> str:
    return (ROOT / "src" / "softsplit" / PLACES[module]).read_text(encoding="utf-8")


def campaign(module: str, args: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as place:
        copy = copied(Path(place))
        if run_tests(copy, TESTS[module]) != PASSED:
            print((copy.parent / "tests.log").read_text()[-2000:], file=sys.stderr)
            raise SystemExit(f"the tests of {module} fail without a mutant.")
    mutants = all_mutants(module)
    chosen = mutants[:: args.every]
    journal = Journal(args.journal, module)
    left = [mutant for mutant in chosen if journal.ends.get(mutant.name) in (None, "survived")]
    for number, (mutant, end) in enumerate(tried(left, args.jobs), 1):
        journal.add(mutant.name, end)
        if end == "survived":
            print(f"survived: {described(mutant)}", file=sys.stderr)
        if number % 20 == 0:
            print(f"{module}: {number} of {len(left)}", file=sys.stderr)
    ends = {mutant: journal.ends[mutant.name] for mutant in chosen}
    count = list(ends.values()).count
    return {
        "module": module, "mutants": len(mutants), "tried": len(ends) - count("not run"),
        "noticed": count("noticed") + count("hung"), "of_which_hung": count("hung"),
        "survivors": [described(mutant) for mutant, end in ends.items() if end == "survived"],
    }  # fmt: skip


class Journal:
    """What became of the mutants of a module, a line each."""

    def __init__(self, folder: Path, module: str) -> None:
        digest = hashlib.sha256(source_of(module).encode()).hexdigest()[:12]
        self.path = folder / f"{module}-{digest}.jsonl"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.ends: dict[str, str] = {}
        if self.path.exists():
            for line in self.path.read_text().splitlines():
                self.ends |= json.loads(line)

    def add(self, mutant: str, end: str) -> None:
        self.ends[mutant] = end
        with self.path.open("a") as file:
            file.write(json.dumps({mutant: end}) + "\n")


def tried(mutants: list[Mutant], jobs: int) -> Iterator[tuple[Mutant, str]]:
    with multiprocessing.get_context("fork").Pool(jobs) as pool:
        yield from pool.imap_unordered(outcome, mutants)


def outcome(mutant: Mutant) -> tuple[Mutant, str]:
    source = source_of(mutant.module)
    changed = mutate_code(source, get_operator(mutant.operator)(), mutant.occurrence)
    if changed is None or running_parts(changed) in (running_parts(source), None):
        return mutant, "not run"
    with tempfile.TemporaryDirectory() as place:
        copy = copied(Path(place))
        (copy / "softsplit" / PLACES[mutant.module]).write_text(changed, encoding="utf-8")
        end = run_tests(copy, TESTS[mutant.module])
    return mutant, {PASSED: "survived", -signal.SIGALRM: "hung"}.get(end, "noticed")


def copied(place: Path) -> Path:
    ignored = shutil.ignore_patterns("__pycache__")
    return Path(shutil.copytree(ROOT / "src", place / "src", ignore=ignored))


def described(mutant: Mutant) -> str:
    source = source_of(mutant.module)
    changed = mutate_code(source, get_operator(mutant.operator)(), mutant.occurrence)
    return f"{mutant.name}: {difference(source, changed)}"


def all_mutants(module: str) -> list[Mutant]:
    """For all operators that need no arguments."""
    tree = get_ast(source_of(module))
    found = []
    for name in sorted(operator_names()):
        if any(part in name for part in LEFT_OUT):
            continue
        operator = get_operator(name)()
        count = sum(len(list(operator.mutation_positions(node))) for node in ast_nodes(tree))
        found += [Mutant(module, name, i) for i in range(count)]
    return found


def running_parts(source: str) -> str | None:
    """The program without annotations, which are never run; None if it is no program.

    A mutant that differs in annotations only, or is no program, is not tried.
    """
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.returns = None
        elif isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(None)
    return ast.dump(tree)


def difference(source: str, changed: str) -> str:
    before, after = source.splitlines(), changed.splitlines()
    pairs = [(a, b) for a, b in zip(before, after, strict=False) if a != b]
    line = next((i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), 0)
    a, b = pairs[0] if pairs else ("", "")
    return f"line {line + 1}: {a.strip()} -> {b.strip()}"


def run_tests(copy: Path, tests: list[str]) -> int:
    """How the tests end; in a forked process, which knows no softsplit yet."""
    child = os.fork()
    if child == 0:
        os.setsid()
        signal.alarm(LIMIT)
        try:
            code = _run_tests_here(copy, tests)
        except BaseException:  # nothing of the parent's may be unwound here
            traceback.print_exc()
            code = 3
        os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def _run_tests_here(copy: Path, tests: list[str]) -> int:
    import pytest

    sys.path[:0] = [str(copy), str(ROOT / "tests")]
    sys.dont_write_bytecode = True
    for name in [name for name in sys.modules if name.split(".")[0] == "softsplit"]:
        del sys.modules[name]
    files = [str(ROOT / "tests" / name) for name in tests]
    log = os.open(copy.parent / "tests.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    # Numpy warns of overflows where compiled code does not; pytest, of what is loaded already.
    ignored = ("RuntimeWarning", "pytest.PytestAssertRewriteWarning")
    options = [
        "-x",
        "-q",
        "--tb=line",
        "-p",
        "no:cacheprovider",
        *(f"-Wignore::{name}" for name in ignored),
    ]
    # Two minima that differ by less than rounding: which one wins depends on fused products.
    fused = "tests/problem/test_prox.py::test_linear_prox_and_linearised_prox_agree"
    arguments = [*options, f"--deselect={fused}", f"--rootdir={ROOT}", *files]
    return int(pytest.main(arguments, plugins=[NoShrinking()]))


class NoShrinking:
    """A plugin of pytest: that a property fails is enough, a short example is not wanted."""

    def pytest_configure(self) -> None:
        from hypothesis import Phase, settings

        usual = settings.get_current_profile_name()
        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("mutants", settings.get_profile(usual), phases=phases)
        settings.load_profile("mutants")


if __name__ == "__main__":
    began = time.perf_counter()
    main()
    print(f"{time.perf_counter() - began:.0f} s", file=sys.stderr)
