"""Golden results: trees are those of former versions, and a check notices where they are not."""

from __future__ import annotations

import copy
import importlib
import json
import re
import sys
from pathlib import Path

import pytest

ROOT = next(p for p in Path(__file__).resolve().parents if (p / "pyproject.toml").exists())
QUICK = "log-no-penalty"


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


def altered(stored, name, **values):
    changed = copy.deepcopy(stored)
    changed["cases"][name]["trees"][0].update(values)
    return changed


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("parameters", "0" * 64, "parameters have other bits"),
        ("n_iter", -1, "n_iter [0-9]+, was -1"),
        ("status", "FAILED", "status [A-Z]+, was FAILED"),
    ],
)
def test_altered_bits_are_noticed(golden, stored, field, value, said):
    known = stored["cases"][QUICK]
    assert golden.compare(known, known).text == "same bits"
    other = altered(stored, QUICK, **{field: value})["cases"][QUICK]
    verdict = golden.compare(known, other)
    assert not verdict.good and re.search(said, verdict.text), verdict.text
    assert golden.compare(known, other, tolerance=1e-9).good
    assert golden.compare(known, other, bits=False).good
