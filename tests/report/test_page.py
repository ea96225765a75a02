"""The parts of the report that need no browser."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from places import ROOT
from softsplit import SoftTreeClassifier
from softsplit.report import assess
from softsplit.report.pages import PageTable, json_for_script, render
from softsplit.report.sections import glossary


@given(st.dictionaries(st.text(), st.text() | st.integers(), max_size=5))
def test_json_in_a_script_is_json_and_cannot_end_it(values):
    text = json_for_script(values)
    assert json.loads(text) == values
    assert not set("<>&\u2028\u2029") & set(text)


@given(st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc"])))
def test_names_in_elements_are_text_to_a_browser(name):
    seen = []

    class Parser(HTMLParser):
        def handle_starttag(self, tag, attributes):
            seen.append((tag, dict(attributes)))

        def handle_data(self, data):
            seen.append(data)

    explanation = SimpleNamespace(label="a", note=name, leaf_label=name)
    parser = Parser()
    parser.feed(
        render(
            "notebook.html", kind="explanation", style="", explanation=explanation, asked=[],
            chances=[], changes=PageTable(name, [name], [[name]]),
        )
    )  # fmt: skip
    parser.close()
    tags = [part for part in seen if isinstance(part, tuple)]
    box = {"class": "scroll", "tabindex": "0", "role": "region", "aria-label": name}
    assert ("div", box) in tags and len(tags) == (17 if name else 16)
    assert "".join(part for part in seen if isinstance(part, str)).count(name) >= 5


def test_words_are_the_same_in_page_and_documents():
    lines = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    assert len(glossary()) == 13
    for word, meaning in glossary().items():
        assert f"| **{word}** | {meaning} |" in lines


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    X = rng.uniform(size=(90, 4))
    return X, np.where(X[:, 0] + X[:, 1] > 1, "b", "a")


FRACTIONS = [0.01, 0.05, 0.2]


def test_every_row_is_predicted_once_by_a_tree_without_it(rows):
    X, y = rows
    base = SoftTreeClassifier(depth=1, global_strength=1.0, n_starts=1, random_state=0)
    found = assess(base, X, y, FRACTIONS, n_folds=3, seed=1)
    assert len(found.trees) == 3 and all(found.judged(i) for i in range(3))
    np.testing.assert_array_equal(found.labels, np.searchsorted(["a", "b"], y))
    assert np.mean(found.trees[0].calls == found.labels) > 0.85
    assert len(np.unique(found.baselines["majority"].calls)) == 1
    for judged in (*found.trees, *found.baselines.values()):
        assert judged.complete
        np.testing.assert_allclose(judged.proba.sum(axis=1), 1)
    for name in ("logistic", "cart", "boosting"):
        assert np.mean(found.baselines[name].calls == found.labels) > 0.7, name
    again = assess(base, X, y, FRACTIONS, n_folds=3, seed=1, n_jobs=2)
    for first, second in zip(found.trees, again.trees, strict=True):
        np.testing.assert_array_equal(first.proba, second.proba)
    # The same by hand for the first fold of the path: a leak would show here.
    shuffled = y[np.random.default_rng(0).permutation(len(y))]
    noise = assess(base, X, shuffled, [0.01], n_folds=3, seed=1)
    assert np.mean(noise.trees[0].calls == noise.labels) < 0.7
