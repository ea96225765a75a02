"""No module imports a private name of another; ruff (SLF) sees those that are attributes."""

from __future__ import annotations

import ast

from places import ROOT

OF_OTHERS = {"_check_sample_weight", "_dynfunc", "_safe_indexing"}
"""Of scikit-learn and numba, which offer nothing public for it."""


def test_no_module_imports_a_private_name_of_another():
    imported = {
        one.name
        for file in (ROOT / "src" / "softsplit").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom)
        for one in node.names
    }
    assert {name for name in imported if name[0] == "_" and name[-2:] != "__"} == OF_OTHERS
