"""Every code block of the documents runs, or at least names commands and options that exist.

Python blocks of a page run one after the other in one namespace, in an empty folder;
`softsplit` lines of `sh` blocks run in between, through the command line. Lines in other
blocks, and in blocks marked as not run, are compared with the options of the commands.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from doc_blocks import Block, blocks, shell_commands
from places import ROOT
from softsplit.cli.app import app
from softsplit.report import comparison
from softsplit.report.comparison import ComparisonOptions

pytestmark = pytest.mark.slow

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
NEEDS = {"skops": "skops", "onnxruntime": "onnxruntime", "matplotlib": "matplotlib"}
COMMAND = typer.main.get_command(app)


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def runs(block: Block) -> bool:
    shell = block.language in ("sh", "bash") and shell_commands(block, "softsplit")
    return not block.reason and (block.language == "python" or bool(shell))


RUNNING = [page for page in PAGES if any(map(runs, blocks(page)))]


@pytest.mark.parametrize("page", RUNNING, ids=name_of)
def test_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # reports of few trees: it is words that are tried
    options = ComparisonOptions(points=2, folds=2)
    monkeypatch.setattr(comparison, "OPTIONS", options)
    session = ModuleType("document_" + re.sub(r"\W", "_", page.stem))
    monkeypatch.setitem(sys.modules, session.__name__, session)  # dataclasses look it up
    for block in filter(runs, blocks(page)):
        for module, package in NEEDS.items():
            if re.search(rf"^(import|from) {module}\b", block.setup + block.code, re.MULTILINE):
                pytest.importorskip(module, reason=f"needs {package}")
        run_python(block.setup, f"{name_of(page)}, before line {block.line}", session)
        if block.language == "python":
            code = "\n" * (block.line - 1) + block.code
            run_python(code, name_of(page), session)
        else:
            for words in shell_commands(block, "softsplit"):
                run_command(words, f"{name_of(page)}, line {block.line}")


def run_python(code: str, where: str, session: ModuleType) -> None:
    exec(compile(code, where, "exec"), session.__dict__)


def run_command(words: list[str], where: str) -> None:
    if ">" in words:
        target = Path(words.pop())
        words.remove(">")
    else:
        target = None
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, f"{where}: softsplit {' '.join(words)}\n{result.output}"
    if target is not None:
        target.write_text(result.stdout, encoding="utf-8")


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


def test_unknown_options_are_noticed() -> None:
    assert unknown_words(["vc", "--depth", "3", "--features", "10"]) == []
    assert unknown_words(["vc", "--dept=3"]) == ["--dept"]
    assert unknown_words(["veecee"]) == ["veecee"]


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


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_python_block_says_that_it_is_python(page: Path) -> None:
    """An unmarked block that is Python would never run."""
    for block in blocks(page):
        if block.language in ("python", "sh", "bash", "toml", "json"):
            continue
        looks = re.search(r"^\s*(import \w+|from [\w.]+ import )", block.code, re.MULTILINE)
        assert not looks, f"{name_of(page)}, line {block.line}: mark this block as python"


def test_specs_of_experiments_are_accepted() -> None:
    spec = pytest.importorskip("softsplit.experiments.spec", reason="needs softsplit[experiments]")
    shown = [b for b in blocks(ROOT / "docs" / "experiments.md") if b.language == "toml"]
    assert shown
    for block in shown:
        spec.parse_spec(block.code, f"docs/experiments.md, line {block.line}")


def test_blocks_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "words\n\n<!-- run first: x = 1\ny = 2 -->\n\n```python\nz = x\n```\n\n"
        "<!-- not run: takes hours -->\n```sh\nsoftsplit a \\\n    --b 'c d'  # why\n```\n\n"
        "    softsplit e\n    other\n\nend\n"
    )
    first, second, third = blocks(page)
    assert (first.language, first.code, first.setup) == ("python", "z = x\n", "x = 1\ny = 2\n")
    assert first.line == 7 and not first.reason
    assert second.reason == "takes hours" and not second.setup
    assert shell_commands(second, "softsplit") == [["a", "--b", "c d"]]
    assert shell_commands(third, "softsplit") == [["e"]]
    assert not runs(second) and runs(first) and not runs(third)
