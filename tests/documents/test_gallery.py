"""The examples run, and the gallery shows all of them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from places import ROOT
from slow_cases import slow

pytest.importorskip("matplotlib", reason="needs softsplit[plots]")

sys.path.insert(0, str(ROOT / "docs" / "site"))
import gallery
import machines

EXAMPLES = gallery.examples()


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 10


# Each of these trains for seconds; all are run before a release, and drawn by "make documents".
LONG = {
    "plot_monotone", "plot_groups", "plot_feature_costs", "plot_fairness",
    "plot_stability", "plot_against_l1", "plot_against_cart", "plot_minimum_rates", "plot_scalings",
}  # fmt: skip


@pytest.mark.parametrize(
    "example",
    [
        *(one for one in EXAMPLES if one.name not in LONG),
        *slow(*(one for one in EXAMPLES if one.name in LONG)),
    ],
    ids=lambda example: example.name,
)
def test_example_runs(example: gallery.Example, tmp_path: Path) -> None:
    picture = tmp_path / "picture.png"
    printed, n_figures = gallery.run(example, picture)
    assert n_figures == 1
    assert picture.stat().st_size > 5000
    assert bool(printed.strip()) == example.printed.is_file(), "run: make documents"
    if printed.strip() and machines.made_here(f"examples/{example.name}"):
        assert printed == example.printed.read_text(encoding="utf-8"), "run: make documents"


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_example_has_a_page(example: gallery.Example) -> None:
    title, text = example.words
    assert title and text
    assert example.picture.is_file(), "run: make documents"
    page = example.page()
    assert page.startswith(f"# {title}\n") and example.code in page
    assert '"""' not in page.partition("```python")[2][:10]
    assert title in gallery.index_page()
