"""Every code block of the documents runs, and what the pages show is what it prints and draws.

Lines in other blocks, and in blocks marked as not run, are compared with the options of the
commands. How pages run: docs/site/printed.py.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from places import ROOT
from slow_cases import slow
from softsplit.cli.app import app
from softsplit.report import comparison
from softsplit.report.comparison import ComparisonOptions

sys.path.insert(0, str(ROOT / "docs" / "site"))
import machines
import printed
from printed import Session, blocks, shell_commands

PAGES = printed.pages()
NEEDS = {"skops": "skops", "onnxruntime": "onnxruntime", "matplotlib": "matplotlib"}
COMMAND = typer.main.get_command(app)


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


RUNNING = [page for page in PAGES if any(block.runs for block in blocks(page))]
LONG = {"docs/cli.md", "docs/requirements.md", "docs/sizes.md", "docs/tables.md"}


@pytest.mark.parametrize(
    "page",
    [
        *(page for page in RUNNING if name_of(page) not in LONG),
        *slow(*(page for page in RUNNING if name_of(page) in LONG)),
    ],
    ids=name_of,
)
def test_pages_show_what_their_code_prints_and_draws(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # reports of few trees: no page shows what they compare
    monkeypatch.setattr(comparison, "OPTIONS", ComparisonOptions(points=2))
    code = "\n".join(block.setup + block.code for block in blocks(page) if block.runs)
    for module, package in NEEDS.items():
        if re.search(rf"^(import|from) {module}\b|softsplit.plots\b", code, re.MULTILINE):
            pytest.importorskip(module, reason=f"needs {package}")
    if "SOFTSPLIT_DATA" in code and not os.environ.get("SOFTSPLIT_DATA"):
        pytest.skip("needs the data sets of the paper: set SOFTSPLIT_DATA")
    with printed.empty_folder():
        session = Session(page, draws=lambda path: path.endswith(".svg")).run()
    if not machines.made_here(page.relative_to(ROOT).as_posix()):
        return
    for block, text in session.fresh:
        assert block.code == text, f"{name_of(page)}, line {block.line}: run make documents"
    for path, display in session.displays.items():
        drawn = tmp_path / path.name
        printed.save(display, drawn)
        assert printed.picture_texts(path) == printed.picture_texts(drawn), "run make documents"


def test_readme_is_its_source_without_comments() -> None:
    assert printed.README.read_text(encoding="utf-8") == printed.readme(), "run make documents"


MENTIONING = [p for p in PAGES if any(shell_commands(b, "softsplit") for b in blocks(p))]


@pytest.mark.parametrize("page", MENTIONING, ids=name_of)
def test_commands_exist(page: Path) -> None:
    for block in blocks(page):
        for words in shell_commands(block, "softsplit"):
            assert unknown_words(words) == [], f"{name_of(page)}, line {block.line}"


def unknown_words(words: list[str]) -> list[str]:
    """Commands and options that the command line does not have."""
    command: Any = COMMAND
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        found = command.get_command(typer.Context(command), words[0])
        if found is None:
            return [words[0]]
        command, words = found, words[1:]
    known = {"--help", "-h", "--version", "--install-completion", "--show-completion"}
    for parameter in command.params:
        known.update(parameter.opts, parameter.secondary_opts)
    asked = [word.partition("=")[0] for word in words if re.match(r"--?[a-zA-Z]", word)]
    return [option for option in asked if option not in known]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_make_targets_and_extras_exist(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    extras = set(re.findall(r"^(\w+) = \[", (ROOT / "pyproject.toml").read_text(), re.MULTILINE))
    for block in blocks(page):
        for words in shell_commands(block, "make"):
            asked = [word for word in words if "=" not in word]
            assert set(asked) <= targets, f"{name_of(page)}, line {block.line}"
        for group in re.findall(r"pip install [^\n]*\[([\w,]+)\]", block.code):
            assert set(group.split(",")) <= extras, f"{name_of(page)}, line {block.line}"


def test_specs_of_experiments_are_accepted() -> None:
    spec = pytest.importorskip("softsplit.experiments.spec", reason="needs softsplit[experiments]")
    shown = [b for b in blocks(ROOT / "docs" / "experiments.md") if b.language == "toml"]
    assert shown
    for block in shown:
        spec.parse_spec(block.code, f"docs/experiments.md, line {block.line}")
