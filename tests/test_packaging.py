"""The wheel builds, and an environment with nothing but that wheel can fit a tree."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

FIT_IRIS = """
import importlib.util, pathlib, sys
import softsplit
from sklearn.datasets import load_iris
inside = pathlib.Path(softsplit.__file__).is_relative_to(sys.prefix)
X, y = load_iris(return_X_y=True)
tree = softsplit.SoftTreeClassifier(global_strength=0.5, n_starts=3, random_state=0).fit(X, y)
print("inside", inside)
print("casadi", importlib.util.find_spec("casadi") is not None)
print("accuracy", tree.score(X, y))
"""


def run(*command: str | Path, cwd: Path) -> str:
    """Output of a command that must succeed; nothing of this environment leaks into it."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{command[0]} failed:\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    options = ["--wheel", "--no-isolation", "--outdir", folder]
    run(sys.executable, "-m", "build", *options, ROOT, cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


def test_wheel_holds_the_whole_package(wheel: Path) -> None:
    source = ROOT / "src"
    kinds = (".py", ".toml", ".json", ".csv", ".css", ".js")
    files = [p for p in source.rglob("*") if p.suffix in kinds]
    expected = {p.relative_to(source).as_posix() for p in files}
    assert {"softsplit/experiments/specs/table2.toml", "softsplit/data/catalogue.json"} <= expected
    names = set(zipfile.ZipFile(wheel).namelist())
    assert expected | {"softsplit/py.typed"} <= names
    assert not [n for n in names if not n.startswith(("softsplit/", "softsplit-"))]
    assert any(n.endswith("licenses/LICENSE") for n in names)


def test_nothing_but_the_wheel_fits_a_tree(wheel: Path, tmp_path: Path) -> None:
    home = tmp_path / "environment"
    venv.create(home, with_pip=True)
    python = home / ("Scripts" if os.name == "nt" else "bin") / "python"
    run(python, "-m", "pip", "install", "--quiet", "--no-compile", wheel, cwd=tmp_path)
    output = run(python, "-I", "-c", FIT_IRIS, cwd=tmp_path)
    said = dict(line.split() for line in output.splitlines())
    assert said["inside"] == "True"
    assert said["casadi"] == "False"
    assert float(said["accuracy"]) >= 0.94
    assert run(python.with_name("softsplit"), "--version", cwd=tmp_path).startswith("softsplit ")
