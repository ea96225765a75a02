"""The wheel builds, and an environment with nothing but that wheel can fit a tree."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from importlib.metadata import Distribution, PathDistribution, distribution
from pathlib import Path
from typing import Any

import pytest
import yaml
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


# No module imports a private name of another; ruff (SLF) sees those that are attributes.


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


# Workflows, conda recipe, release: what they name exists, and no job may do more than it must.


FOLDER = ROOT / ".github" / "workflows"
WORKFLOWS = {path.name: yaml.safe_load(path.read_text("utf-8")) for path in FOLDER.glob("*.yml")}
JOBS = [(f, name, job) for f, w in WORKFLOWS.items() for name, job in w["jobs"].items()]
STEPS = [(f"{f}:{name}", step) for f, name, job in JOBS for step in job["steps"]]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

WRITING = {
    ("docs.yml", "publish"): {"pages", "id-token"},
    ("release.yml", "testpypi"): {"id-token"},
    ("release.yml", "pypi"): {"id-token"},
    ("release.yml", "notes"): {"contents"},
}
"""What some jobs may write; all others only read the sources."""


def test_every_job_states_the_least_it_needs() -> None:
    assert len(JOBS) >= 10
    assert all(workflow["permissions"] == {} for workflow in WORKFLOWS.values())
    for file, name, job in JOBS:
        writes = {what for what, how in job["permissions"].items() if how == "write"}
        assert writes == WRITING.get((file, name), set()), f"{file}: {name}"
        assert 0 < job["timeout-minutes"] <= 60, f"{file}: {name}"


def test_every_action_is_pinned_by_hash_with_its_version_beside() -> None:
    lines = [line for p in FOLDER.glob("*.yml") for line in p.read_text("utf-8").splitlines()]
    uses = [line for line in lines if "uses:" in line]
    pinned = re.compile(r"^\s*(- )?uses: ([\w./-]+)@([0-9a-f]{40}) # (v\d+\.\d+\.\d+)$")
    found = [pinned.match(line) for line in uses]
    assert [line for line, match in zip(uses, found, strict=True) if match is None] == []
    hashes = {(match[2], match[3], match[4]) for match in found if match}
    assert len(hashes) == len({name for name, _, _ in hashes}), "one version of each action"
    left = [where for where, step in STEPS if "checkout@" in step.get("uses", "")
            and step["with"]["persist-credentials"] is not False]  # fmt: skip
    assert left == []


def test_targets_scripts_and_extras_exist() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    commands = [(where, step["run"]) for where, step in STEPS if "run" in step]
    made = [(w, t) for w, c in commands for t in re.findall(r"\bmake(?: --silent)? ([\w-]+)", c)]
    assert len(made) >= 8
    assert [(where, target) for where, target in made if target not in targets] == []
    scripts = [(w, s) for w, c in commands for s in re.findall(r"python (?:-I )?(\S+\.py)", c)]
    assert len(scripts) >= 4
    assert [(where, script) for where, script in scripts if not (ROOT / script).is_file()] == []
    extras = {e for _, c in commands for e in re.findall(r"\.\[([\w,]+)\]", c)}
    known = set(PROJECT["optional-dependencies"])
    assert {e for listed in extras for e in listed.split(",")} <= known


def test_recipe_needs_what_the_wheel_needs() -> None:
    recipe: dict[str, Any] = yaml.safe_load((ROOT / "conda/recipe.yaml").read_text("utf-8"))

    def bounds(lines: list[str]) -> dict[str, str]:
        needs = [Requirement(line.replace(" ", "", 1)) for line in lines if "{" not in line]
        return {need.name: str(need.specifier) for need in needs}

    assert bounds(recipe["requirements"]["run"]) == bounds(PROJECT["dependencies"])
    assert recipe["build"]["noarch"] == "python"
    (script,) = PROJECT["scripts"].items()
    assert recipe["build"]["python"]["entry_points"] == [" = ".join(script)]
    (tested,) = [test["files"]["source"] for test in recipe["tests"] if "files" in test]
    assert all((ROOT / name).is_file() for name in tested)


def release(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    script = root / "docs" / "site" / "release.py"
    return subprocess.run([sys.executable, script, *words], capture_output=True, text=True)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The few files that name the version."""
    for name in (
        "docs/site/release.py", "src/softsplit/support/version.py", "CHANGELOG.md", "CITATION.cff",
    ):  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_versions_agree_and_a_wrong_one_is_told(copy: Path) -> None:
    recipe = yaml.safe_load((ROOT / "conda/recipe.yaml").read_text("utf-8"))
    version = recipe["context"]["version"]
    assert release(copy, "check", "--tag", f"v{version}").returncode == 0
    assert release(copy, "notes").stdout.startswith("The first release.")
    wrong = release(copy, "check", "--tag", "v9.9")
    assert wrong.returncode == 1 and wrong.stderr == f"the tag says v9.9, not v{version}.\n"
    citation = copy / "CITATION.cff"
    citation.write_text(citation.read_text("utf-8").replace(version, "0.0.9"), "utf-8")
    assert f"CITATION.cff says 0.0.9, not {version}." in release(copy, "check").stderr
