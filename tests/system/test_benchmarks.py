"""The benchmark scripts run, on a small scale: what they measure is not judged here."""

from __future__ import annotations

import importlib
import io
import json
import os
import re
import subprocess
import sys
import warnings
from contextlib import redirect_stdout

import pytest

from places import ROOT

pytestmark = pytest.mark.slow

FOLDER = ROOT / "benchmarks"


def run(script, *arguments, reference=None, data=None):
    """What a script prints. It runs in this process, where the library is loaded already."""
    with (
        pytest.MonkeyPatch.context() as patch,
        warnings.catch_warnings(action="ignore"),  # a user would see them on standard error
        redirect_stdout(io.StringIO()) as printed,
    ):
        for name, value in (("SOFTSPLIT_DATA", data), ("SOFTSPLIT_REFERENCE", reference)):
            if value is not None:
                patch.setenv(name, str(value))
            elif name == "SOFTSPLIT_DATA":
                patch.delenv(name, raising=False)
        patch.setattr(sys, "argv", [script, *arguments])
        patch.syspath_prepend(str(FOLDER))
        try:
            importlib.import_module(script.removesuffix(".py")).main()
        except SystemExit as end:
            assert not end.code, end.code
    return printed.getvalue()


def run_alone(script, *arguments):
    """The same in a process of its own, where that is what the script measures or changes."""
    command = [sys.executable, str(FOLDER / script), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def module(name):
    """A script as a module."""
    sys.path.insert(0, str(FOLDER))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(FOLDER))


DATA = os.environ.get("SOFTSPLIT_DATA")
SMALL = {
    "new_rows.py noise run --datasets iris --out {out}/noise --draws 1 --methods cart":
        "iris 0 400 cart",
    "new_rows.py noise table --out {out}/noise --draws 1 --methods cart": "- 400 columns, cart: ",
    "new_rows.py rare run --datasets wdbc --out {out}/rare --draws 1 --methods cart": "wdbc 0.05 0",
    "new_rows.py rare table --out {out}/rare --draws 1 --methods cart": "- 5% positives, 1 data",
    "exports.py agree iris --runners python,sqlite": "answers, 0 with another class",
    "exports.py million --rows 500": r"\| 8 numbers \|",
    "decomposition.py native --out {out} --datasets car --folds 1 --starts 2 --macro-iterations 1":
        "S-NB-DEC, init 20, proximal",
}  # fmt: skip
"""Calls of scripts, and what they print; tables are made of the rows of the call before."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("benchmarks")


@pytest.mark.skipif(DATA is None, reason="SOFTSPLIT_DATA is not set")
@pytest.mark.parametrize("call", SMALL)
def test_scripts_run_on_a_small_scale(folder, call):
    script, *words = call.split()
    filled = [word.format(out=folder) for word in words]
    assert re.search(SMALL[call], run(script, *filled, data=DATA))


def test_mutation(tmp_path):
    pytest.importorskip("cosmic_ray", reason="needs the development tools")
    arguments = ("mutation.py", "sparsity", "--every", "15", "--journal", str(tmp_path))
    printed = run_alone(*arguments)
    assert re.search(r"\| sparsity \| \d+ \| (\d) \| \1 \| 0 \| 0 \|", printed)
    (journal,) = tmp_path.iterdir()
    ends = [json.loads(line) for line in journal.read_text().splitlines()]
    assert [list(end.values()) for end in ends] == [["noticed"]] * len(ends)
    journal.write_text(
        "\n".join(json.dumps(end) for end in ends[:-1]) + "\n"
    )  # stopped before the end
    assert run_alone(*arguments) == printed
    assert len(journal.read_text().splitlines()) == len(ends) > 2


def test_benchmarks_by_name_are_scripts_of_the_folder():
    bench = module("bench")
    steps = [step.split()[0] for benchmark in bench.BENCHMARKS.values() for step in benchmark.steps]
    assert [step for step in steps if not (FOLDER / step).is_file()] == []
    assert bench.main("nothing") == 1 and bench.main() == 0
