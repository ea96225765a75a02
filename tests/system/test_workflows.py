"""Workflows, conda recipe, release: what they name exists, and no job may do more than it must."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

from places import ROOT

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
