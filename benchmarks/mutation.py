"""Mutation testing: small faults put into the mathematics, which the tests must notice.

    python benchmarks/mutation.py --write                  a sample of every module
    python benchmarks/mutation.py penalties --every 1      all mutants of one module

The mutants are made by the operators of cosmic-ray. Compiled functions run as plain Python
(NUMBA_DISABLE_JIT), since compiling takes longer than the tests. Libraries are loaded once; every
mutant is a forked process that loads softsplit anew from a copy with one changed file and runs the
tests of that module up to the first failure. A mutant that hangs counts as noticed.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

os.environ["NUMBA_DISABLE_JIT"] = "1"

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names
from pages import keep, markdown

ROOT = Path(__file__).parent.parent
TESTS = {
    "routing": ["test_routing.py"],
    "penalties": ["test_penalties.py", "test_prox.py"],
    "constraints": ["test_constraints.py"],
    "sparsity": ["test_sparsity.py"],
}
EVERY = {"routing": 6, "penalties": 8, "constraints": 2, "sparsity": 1}
"""Of the mutants of a module every so many-th is tried."""

LEFT_OUT = (
    "RemoveDecorator",
    "VariableReplacer",
    "VariableInserter",
)
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
    parser.add_argument("--every", type=int, help="try every so many-th mutant")
    parser.add_argument("--write", action="store_true", help="figures to docs/results/reliability")
    args = parser.parse_args()
    for name in LIBRARIES:
        importlib.import_module(name)
    rows = []
    for module in [args.module] if args.module else TESTS:
        rows.append(campaign(module, args.every or EVERY[module]))
        print(rows[-1], file=sys.stderr)
    table = markdown(
        ["module", "mutants", "tried", "noticed", "of which by their time", "survived"],
        [
            [
                r["module"],
                r["mutants"],
                r["tried"],
                r["noticed"],
                r["of_which_hung"],
                len(r["survivors"]),
            ]
            for r in rows
        ],
    )
    keep("mutation", {"modules": rows}, table, write=args.write and args.module is None)


def campaign(module: str, every: int) -> dict[str, Any]:
    source = (ROOT / "src" / "softsplit" / f"{module}.py").read_text(encoding="utf-8")
    plain, mutants = running_parts(source), all_mutants(source)
    tried = mutants[:: max(1, every)]
    survivors, noticed, hung = [], 0, 0
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place) / "src"
        shutil.copytree(ROOT / "src", copy, ignore=shutil.ignore_patterns("__pycache__"))
        target = copy / "softsplit" / f"{module}.py"
        if run_tests(copy, TESTS[module]) != PASSED:
            print((Path(place) / "tests.log").read_text()[-2000:], file=sys.stderr)
            raise SystemExit(f"the tests of {module} fail without a mutant.")
        for number, (operator, occurrence) in enumerate(tried):
            changed = mutate_code(source, get_operator(operator)(), occurrence)
            if changed is None or running_parts(changed) in (plain, None):
                continue
            target.write_text(changed, encoding="utf-8")
            end = run_tests(copy, TESTS[module])
            hung += end == -signal.SIGALRM
            if end == PASSED:
                survivors.append(f"{operator} {occurrence}: {difference(source, changed)}")
                print(f"survived: {survivors[-1]}", file=sys.stderr)
            else:
                noticed += 1
            if number % 20 == 19:
                print(f"{module}: {number + 1} of {len(tried)}", file=sys.stderr)
        target.write_text(source, encoding="utf-8")
    return {
        "module": module, "mutants": len(mutants), "tried": noticed + len(survivors),
        "noticed": noticed, "of_which_hung": hung, "survivors": survivors,
    }  # fmt: skip


def all_mutants(source: str) -> list[tuple[str, int]]:
    """Operator and number of occurrence, for all operators that need no arguments."""
    tree = get_ast(source)
    found = []
    for name in sorted(operator_names()):
        if any(part in name for part in LEFT_OUT):
            continue
        operator = get_operator(name)()
        count = sum(len(list(operator.mutation_positions(node))) for node in ast_nodes(tree))
        found += [(name, i) for i in range(count)]
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
    options = ["-x", "-q", "-p", "no:cacheprovider", *(f"-Wignore::{name}" for name in ignored)]
    # Two minima that differ by less than rounding: which one wins depends on fused products.
    fused = "tests/test_prox.py::test_linear_prox_and_linearised_prox_agree"
    code = pytest.main([*options, f"--deselect={fused}", f"--rootdir={ROOT}", *files])
    return int(code)


if __name__ == "__main__":
    began = time.perf_counter()
    main()
    print(f"{time.perf_counter() - began:.0f} s", file=sys.stderr)
