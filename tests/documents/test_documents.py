"""What the documents promise: own rules of a decomposition, and links that lead somewhere."""

from __future__ import annotations

import json
import pkgutil
import re
import sys
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

import pandas as pd
import pytest

from places import ROOT

sys.path.insert(0, str(ROOT / "docs" / "site"))
sys.path.insert(0, str(ROOT / "benchmarks"))
import machines
import pictures
import pmlb_table

DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)


def anchors(document: Path) -> set[str]:
    """Anchors of the headings, formed as code hosts form them."""
    titles = HEADING.findall(document.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_table_of_other_methods_is_that_of_the_experiment() -> None:
    """Every row of the table of the results page has the means over the rows of peers.csv."""
    results = pd.read_csv(ROOT / "docs" / "results" / "experiments" / "peers.csv")
    means = results.groupby("model").mean(numeric_only=True)
    text = (ROOT / "docs" / "results" / "experiments.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| [^|]*\(`(.+)`\) \|(.*)\|$", text, re.MULTILINE)
    assert len(rows) >= 12
    for model, cells in rows:
        accuracy, loss, features, nonzeros = (float(c.replace(",", "")) for c in cells.split("|"))
        found = means.loc[model]
        assert accuracy == round(100 * found.test_accuracy, 1), model
        assert loss == round(found.test_log_loss, 2), model
        assert features == round(found.features_used, 1), model
        assert nonzeros == pytest.approx(found.nonzeros, abs=0.05), model


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_relative_links_lead_somewhere(document: Path) -> None:
    links = LINK.findall(document.read_text(encoding="utf-8"))
    dead = []
    for link in links:
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = (document.parent / name).resolve() if name else document
        alive = target.exists() and (not anchor or anchor in anchors(target))
        if not alive:
            dead.append(link)
    assert dead == []


OTHERS = {"CalibratedClassifierCV"}
"""Names that documents mention and that are not of this project."""


@pytest.fixture(scope="module")
def project() -> tuple[list[str], set[str]]:
    """The files of the project, and the words in its programs and in examples of pages."""
    folders = ("src", "tests", "benchmarks", "examples", "docs", ".github")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.*")]
    programs = [*(f for f in files if f.suffix in (".py", ".toml", ".js", ".yml")), *ROOT.glob("*")]
    texts = [p.read_text(encoding="utf-8") for p in programs if p.is_file() and p.suffix != ".md"]
    texts += FENCED.findall("\n".join(d.read_text(encoding="utf-8") for d in DOCUMENTS))
    words = {word for text in texts for word in re.findall(r"\w+", text)}
    return [path.as_posix() for path in files], words | {path.stem for path in files}


FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"\b(?:[a-z]{2,}(?:_[a-z]{2,})+|(?:[A-Z][a-z]+){2,}[A-Z]*)\b")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_names_in_documents_are_those_of_the_code(document, project) -> None:
    """Modules by their path, functions, classes and parameters by their name."""
    files, words = project
    for code in re.findall(r"`([^`\n]+)`", FENCED.sub("", document.read_text(encoding="utf-8"))):
        for path in re.findall(r"[\w/]+\.py\b", code):
            assert any(file.endswith(f"/{path}") for file in files), path
        assert set(NAMED.findall(code)) <= words | OTHERS, code
        for name in re.findall(r"softsplit(?:\.[a-z_]+){2,}(?:\.\w+)?", code):
            assert pkgutil.resolve_name(name) is not None


NUMBER = r"([\d.,]*\d)"
QUOTED = {
    "when: noise": (
        "when.md", "accuracy falls by #, # and # points",
        "selection.md", "falls by # points in the mean with 10 columns, # with 100 and # with 400",
    ),
    "when: rare classes": (
        "when.md", "balanced accuracy is # %, that of `SoftTreeClassifier()` # %",
        "selection.md", "balanced accuracy # against # %",
    ),
    "when: german credit": (
        "when.md", "the tree is # points behind", "selection.md", "- german-credit (-#)",
    ),
    "when: many classes": (
        "when.md", "per class is # points ahead", "selection.md", "optdigits is behind `peer` (-#)",
    ),
    "solver: best known": (
        "solver.md", "on # problems and within 3 % on #, in the mean of ten seeds",
        "native-solver.md", "a mean of #, # and 25.0 over ten seeds",
    ),
    "solver: log-loss beside ipopt": (
        "solver.md", "is # times IPOPT's in the median of 48 runs, between # and #",
        "native-solver.md", "is # times IPOPT's in the median, between # and #",
    ),
    "dask: workers": ("dask.md", "take # times as long", "dask.md", "against 20.3 s, # times"),
    "ensembles: features": (
        "ensembles.md", "uses # features on average, twenty bagged",
        "ensembles.md", "- tree: accuracy 80.65, log-loss 0.419, features #,",
    ),
    "ensembles: by likelihood": (
        "ensembles.md", "Twenty bagged trees are # points above",
        "ensembles.md", "Tree against bag, 8 data sets: accuracy -#",
    ),
    "tables: sparse": (
        "tables.md", "and 50,000 words takes about [# seconds]", "tables.md", "A fit takes # s",
    ),
    "reliability: memory": (
        "reliability.md", "memory grows by # %", "reliability.md", "| growth % | # |",
    ),
    "reliability: ctrl-c": (
        "reliability.md",
        "[# interruptions](results/waiting-console.md), # ended within one second, the slowest "
        "after #",
        "waiting-console.md", "| all | 0 |  | # | # | # |",
    ),
}  # fmt: skip
"""Page, sentence with # for a figure, page of results, where it is measured."""


SETTINGS = (r"\(45 seconds, 0 for none\)", r"15 to 60 seconds", r"to 1\.5 seconds, because")
"""Seconds that are no figures of one machine: defaults, and limits that are kept."""


@pytest.mark.parametrize("name", QUOTED)
def test_quoted_figures_are_those_of_the_results(name: str) -> None:
    """To the digits that the page shows."""
    page, sentence, results, place = QUOTED[name]
    shown = figures_in(ROOT / "docs" / page, sentence)
    measured = figures_in(ROOT / "docs" / "results" / results, place)
    assert shown == [m.quantize(s, ROUND_HALF_UP) for s, m in zip(shown, measured, strict=True)]


def test_figures_of_speed_are_promises() -> None:
    """What README and documents say of seconds is a promise, quoted from results, or a setting."""
    known: dict[str, list[str]] = {}
    for promise in json.loads((ROOT / "docs" / "results" / "promises.json").read_text()).values():
        for page, words in promise["said"]:
            said = words.format(promise["text"])
            assert float(promise["text"]) == pytest.approx(promise["figure"], rel=0.05)
            assert said in (ROOT / page).read_text(encoding="utf-8"), f"{page}: {said}"
            known.setdefault(page, []).append(re.escape(said))
    for page, sentence, *_ in QUOTED.values():
        pattern = NUMBER.join(re.escape(part) for part in sentence.split("#"))
        known.setdefault(f"docs/{page}", []).append(pattern.replace(r"\ ", r"\s+"))
    for path in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        page = path.relative_to(ROOT).as_posix()
        text = path.read_text(encoding="utf-8")
        for pattern in (*known.get(page, ()), *SETTINGS):
            text = re.sub(pattern, "", text)
        assert re.search(r"\d[\d.,]* (s|ms|seconds)\b", text) is None, page


def figures_in(page: Path, sentence: str) -> list[Decimal]:
    """The figures at the # of a sentence, which must be on the page once."""
    pattern = NUMBER.join(re.escape(part) for part in sentence.split("#"))
    found = re.findall(pattern.replace(r"\ ", r"\s+"), page.read_text(encoding="utf-8"))
    assert len(found) == 1, f"{page.name}: {sentence!r}, {len(found)} times"
    figures = found[0] if isinstance(found[0], tuple) else found
    return [Decimal(figure.replace(",", "")) for figure in figures]


def test_tables_of_peers_are_those_of_their_file() -> None:
    """README, the page of the choice and that of results show what benchmarks/pmlb.csv gives."""
    for page, parts in pmlb_table.texts(pd.read_csv(pmlb_table.MEANS)).items():
        for part, text in parts.items():
            shown = page.read_text(encoding="utf-8").partition(f"<!-- begin {part} -->")[2]
            assert shown.partition("<!-- end")[0].strip() == text.strip(), f"{page.name}: {part}"


def test_the_live_report_is_of_this_code_and_complete() -> None:
    """Its styles and scripts are those of the package: ``make documents`` writes it anew."""
    page = pictures.LIVE.read_text(encoding="utf-8")
    parts = ROOT / "src" / "softsplit" / "report"
    named = ("report.css", "tree.css", "report.js", "tree.js", "fields.js", "case.js", "edit.js")
    old = [name for name in named if (parts / name).read_text("utf-8").strip() not in page]
    assert old == []
    assert pictures.unfit(page) is None


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("Right on 90 of 100 new cases with 3 of 9 columns", None),
        ("the tree uses 0 of 35 columns.", "0 of 35 columns"),
        ("<p>The comparison was cut short; make the report again</p>", "was cut short"),
        ("<script>const words = 'was cut short'</script>", None),
    ],
)
def test_reports_without_a_question_or_a_comparison_are_refused(said: str, why: str | None) -> None:
    assert pictures.unfit(said) == why


def test_pictures_are_drawn_by_the_documents_and_shown_there() -> None:
    """Each is on record with its commit, but those of benchmarks; none lies about unseen."""
    ours = [name for name in machines.pictures() if name not in OF_BENCHMARKS]
    assert sorted(machines.drawings()) == ours, "run make documents"
    reports = {
        f"reports/{name}-{view}.png" for name in pictures.commands() for view in pictures.VIEWS
    }
    assert reports == {name for name in ours if name.startswith("reports/")}
    shown = "\n".join(page.read_text(encoding="utf-8") for page in DOCUMENTS)
    assert [n for n in machines.pictures() if n not in shown and "gallery/" not in n] == []


OF_BENCHMARKS = {"scaling.png", "selection-curve.svg", "reading-curve.svg"}
