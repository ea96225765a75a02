"""No module uses a private name of another: the syntax trees of the library say so."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from places import ROOT

SOURCE = ROOT / "src" / "softsplit"

ALLOWED = {
    # Of tuples with names: public, and named so because fields may have any other name.
    "_asdict",
    "_fields",
    "_replace",
    # Of Python itself.
    "os._exit",
}

THIRD_PARTY = {
    ("__main__.py", "_run_exitfuncs"): "atexit offers no other way to run what is registered",
    ("estimators/training_rows.py", "_check_sample_weight"): "scikit-learn offers no other check",
    ("decomposition/proximal.py", "_safe_indexing"): "rows of arrays and frames by position",
    ("experiments/peers.py", "_predictors"): "the trees of scikit-learn's boosting, to count",
    ("support/processes.py", "_processes"): "the processes of an executor, to end them",
    ("support/compiling.py", "_cache"): "numba's cache has no public interface",
    ("support/compiling.py", "_cache_file"): "numba's cache has no public interface",
    ("support/compiling.py", "_data_layout"): "of LLVM, as numba sets it",
    ("support/compiling.py", "_dump"): "how numba pickles machine code",
    ("support/compiling.py", "_dynfunc"): "what numba makes a compiled function with",
    ("support/compiling.py", "_final_module"): "which functions machine code is made of",
    ("support/compiling.py", "_index_path"): "the file name that numba chose",
    ("support/compiling.py", "_version"): "what numba keeps its files for",
    ("support/compiling.py", "_numba_type_"): "what numba takes an object for",
}
"""Private names of others that are used all the same, and why."""


def is_private(name: str) -> bool:
    return name.startswith("_") and not (name.startswith("__") and name.endswith("__"))


def is_own(value: ast.expr) -> bool:
    """Whether this is self, cls or super()."""
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Name) and value.func.id == "super"
    return isinstance(value, ast.Name) and value.id in ("self", "cls")


def private_names(source: str) -> Iterator[tuple[int, str]]:
    """Line and name of every use of a private name of another."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and is_private(node.attr) and not is_own(node.value):
            if not ALLOWED & {node.attr, ast.unparse(node)}:
                yield node.lineno, node.attr
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.lineno, a.name) for a in node.names if is_private(a.name))


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("other._name", ["_name"]),
        ("self.other._name()", ["_name"]),
        ("make()._name", ["_name"]),
        ("from x import _name, name", ["_name"]),
        ("self._name + cls._name + super()._name()", []),
        ("row._replace(a=1)._asdict()", []),
        ("os._exit(1)", []),
        ("other.__dict__", []),
        ("from x import __version__", []),
    ],
)
def test_what_counts_as_a_private_name_of_another(line, found):
    assert [name for _, name in private_names(line)] == found


def test_no_module_uses_a_private_name_of_another():
    found = [
        f"{path}:{line} {name}"
        for path, line, name in (
            (file.relative_to(SOURCE).as_posix(), line, name)
            for file in sorted(SOURCE.rglob("*.py"))
            for line, name in private_names(file.read_text(encoding="utf-8"))
        )
        if (path, name) not in THIRD_PARTY
    ]
    assert found == []


def test_every_exception_is_needed():
    used = {
        (file.relative_to(SOURCE).as_posix(), name)
        for file in SOURCE.rglob("*.py")
        for _, name in private_names(file.read_text(encoding="utf-8"))
    }
    assert set(THIRD_PARTY) <= used
