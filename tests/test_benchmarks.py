"""The benchmark scripts run, on a small scale: what they measure is not judged here."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "benchmarks"
ROW = "iris,numeric,L0glob,1.0,0,0.1"


def run(script, *arguments, reference=None, data=None):
    environment = {k: v for k, v in os.environ.items() if k != "SOFTSPLIT_DATA"}
    if data is not None:
        environment["SOFTSPLIT_DATA"] = data
    if reference is not None:
        environment["SOFTSPLIT_REFERENCE"] = str(reference)
    done = subprocess.run(
        [sys.executable, str(FOLDER / script), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def reference(tmp_path):
    columns = "dataset,coding,form,strength,fold,min_class_rate"
    (tmp_path / "ipopt.csv").write_text(f"{columns},best_objective\n{ROW},3.7535\n")
    (tmp_path / "best_known.csv").write_text(f"{columns},objective\n{ROW},3.3927\n")
    return tmp_path


def test_kernel():
    out = run("kernel.py", "--rows", "3000", "--repeats", "2")
    assert "ratio" in out
    assert "memory beyond X" in out


def test_ipopt(reference):
    pytest.importorskip("casadi", reason="needs softsplit[ipopt]")
    out = run("ipopt.py", "--starts", "2", reference=reference)
    assert "of 1 rows within 5 %" in out


@pytest.mark.parametrize("part", ["objective", "speed", "ablation"])
def test_solvers(reference, part):
    pytest.importorskip("casadi", reason="needs softsplit[ipopt]")
    out = run("solvers.py", part, "--starts", "2", "--ipopt-starts", "1", reference=reference)
    assert "iris L0glob 1" in out or "search without Reweigh" in out


def test_path_against_fits():
    out = run("solvers.py", "path", "--starts", "2", "--rows", "iris")
    assert "iris" in out


@pytest.mark.skipif("SOFTSPLIT_DATA" not in os.environ, reason="SOFTSPLIT_DATA is not set")
def test_decomposition(tmp_path):
    pytest.importorskip("matplotlib", reason="needs softsplit[plots]")
    small = ["--out", str(tmp_path), "--datasets", "car", "--folds", "1", "--macro-iterations", "1"]
    data = os.environ["SOFTSPLIT_DATA"]
    first = run("decomposition.py", "native", *small, data=data)
    again = run("decomposition.py", "native", *small, data=data)
    assert "S-NB-DEC" in first and again == ""  # what has been run is not run again
    assert "### native, car" in run("decomposition.py", "report", *small, data=data)
    assert (tmp_path / "native-car.png").stat().st_size > 1000


def test_a_missing_reference_folder_is_said():
    environment = {k: v for k, v in os.environ.items() if k != "SOFTSPLIT_REFERENCE"}
    done = subprocess.run(
        [sys.executable, str(FOLDER / "solvers.py"), "objective"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode != 0
    assert "name the folder of the reference tables" in done.stderr
