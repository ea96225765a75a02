"""The wheel builds, and an environment with nothing but that wheel can fit a tree."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
import zipfile
from importlib.metadata import Distribution, PathDistribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from places import ROOT

FIT_IRIS = """
import importlib.util, pathlib, sys
import softsplit
from sklearn.datasets import load_iris
inside = pathlib.Path(softsplit.__file__).is_relative_to(sys.prefix)
X, y = load_iris(return_X_y=True)
tree = softsplit.SoftTreeClassifier(n_starts=1, effort="fast", random_state=0)
tree.fit(X[::3], y[::3])
print("inside", inside)
print("casadi", importlib.util.find_spec("casadi") is not None)
print("accuracy", tree.score(X, y))
"""

COMPILE = """
import numpy as np
from softsplit.engines.samples import Samples
print(Samples.from_arrays(np.zeros((2, 1)), np.array([0, 1]), 2).n_rows)
"""


def run(*command: str | Path, cwd: Path, **others: str) -> str:
    """Output of a command that must succeed; nothing of this environment leaks into it."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "NUMBA"))}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environment | others,
        capture_output=True,
        text=True,
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
    kinds = (".py", ".toml", ".json", ".csv", ".css", ".js", ".html")
    files = [p for p in source.rglob("*") if p.suffix in kinds]
    expected = {p.relative_to(source).as_posix() for p in files}
    some = {"experiments/specs/table2.toml", "data/catalogue.json", "report/templates/report.html"}
    assert {f"softsplit/{name}" for name in some} <= expected
    names = set(zipfile.ZipFile(wheel).namelist())
    assert expected | {"softsplit/py.typed"} <= names
    assert not [n for n in names if not n.startswith(("softsplit/", "softsplit-"))]
    assert any(n.endswith("licenses/LICENSE") for n in names)


def needs(installed: Distribution) -> dict[str, Distribution]:
    """What a package needs without its extras, and what that needs, by name."""
    found: dict[str, Distribution] = {}
    left = [installed]
    while left:
        for line in left.pop().requires or ():
            need = Requirement(line)
            wanted = need.marker is None or need.marker.evaluate({"extra": ""})
            if wanted and need.name not in found:
                found[need.name] = distribution(need.name)
                left.append(found[need.name])
    return found


def test_the_page_on_pypi_is_that_of_a_release() -> None:
    """README.md with another installation line, and without what leads nowhere on PyPI."""
    pytest.importorskip("hatch_fancy_pypi_readme", reason="needs softsplit[dev]")
    page = run(sys.executable, "-m", "hatch_fancy_pypi_readme", cwd=ROOT)
    assert '    pip install "softsplit[plots]"\n' in page
    for absent in ("clone", "make demo", "not yet released", "<!--", "docs/"):
        assert absent not in page
    links = re.findall(r"\]\(([^)]*)\)", page)
    assert all(link.startswith("https://") for link in links), links
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```.+?```", readme, re.DOTALL)
    assert len(blocks) == 4 and all(block in page for block in blocks)


@pytest.mark.slow
def test_nothing_but_the_wheel_fits_a_tree(wheel: Path, tmp_path: Path) -> None:
    """Beside the packages that it names, which are linked: to install them again takes long.

    The tree is fitted by plain Python, and one function is compiled: all of them take a minute.
    """
    home = tmp_path / "environment"
    venv.create(home, with_pip=False)
    windows = os.name == "nt"
    python = home / ("Scripts" if windows else "bin") / "python"
    (site,) = home.glob("Lib/site-packages" if windows else "lib/python*/site-packages")
    install = ("-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-compile")
    run(sys.executable, *install, wheel, cwd=tmp_path)
    (facts,) = site.glob("softsplit-*.dist-info")
    for need in needs(PathDistribution(facts)).values():
        for top in {file.parts[0] for file in need.files or ()} - {"..", "__pycache__"}:
            (site / top).symlink_to(str(need.locate_file(top)))
    output = run(python, "-I", "-c", FIT_IRIS, cwd=tmp_path, NUMBA_DISABLE_JIT="1")
    said = dict(line.split() for line in output.splitlines())
    assert said["inside"] == "True"
    assert said["casadi"] == "False"
    assert float(said["accuracy"]) >= 0.9
    assert run(python, "-I", "-c", COMPILE, cwd=tmp_path) == "2\n"
    assert run(python.with_name("softsplit"), "--version", cwd=tmp_path).startswith("softsplit ")
