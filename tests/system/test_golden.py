"""Golden results: trees are those of former versions."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import pytest

ROOT = next(p for p in Path(__file__).resolve().parents if (p / "pyproject.toml").exists())


@pytest.fixture(scope="module")
def golden():
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        return importlib.import_module("golden")
    finally:
        sys.path.pop(0)


@pytest.fixture(scope="module")
def stored(golden):
    return json.loads(golden.REFERENCE.read_text())


def test_small_cases_are_as_stored(golden, stored):
    """Bits on the machine the file was written on, else objectives within ``OTHER_MACHINE``."""
    bits = not golden.unlike(golden.machine(), stored["machine"])
    names = [name for name, case in golden.CASES.items() if case.small]
    assert len(names) >= 8
    for name in names:
        verdict = golden.compare(golden.run_case(name), stored["cases"][name], bits=bits)
        assert verdict.good, f"{name}: {verdict.text}"


def test_every_case_is_stored(golden, stored):
    assert list(stored["cases"]) == list(golden.CASES)
