"""Other trees as good as the chosen one, and what comes back in resamples."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from softsplit import SoftTreeClassifier, SoftTreeClassifierCV, export_text, load_model, save_model


def twins(n_rows: int = 300, seed: int = 2) -> tuple[pd.DataFrame, np.ndarray]:
    """A class that follows from a feature, of which there is a twin with a little noise."""
    rng = np.random.default_rng(seed)
    signal = rng.normal(size=n_rows)
    X = pd.DataFrame(
        {
            "heat": signal + 0.3 * rng.normal(size=n_rows),
            "twin": signal + 0.3 * rng.normal(size=n_rows),
            "town": rng.choice(["Bern", "Lyon", "Oslo"], n_rows),
            "noise": rng.normal(size=n_rows),
        }
    )
    return X, np.where(signal + 0.7 * rng.logistic(size=n_rows) > 0, "hot", "cold")


@pytest.fixture(scope="module")
def search():
    return SoftTreeClassifierCV(points=False, random_state=0).fit(*twins())


def looks_of(tree):
    return tuple(tree.selected_features_), np.count_nonzero(np.any(tree.weights_, axis=0))


def test_alternatives_differ_from_the_tree_and_from_each_other(search):
    X, y = twins()
    found = search.alternatives(4)
    assert 1 <= len(found) <= 4
    looks = [looks_of(search), *(looks_of(one.tree) for one in found)]
    assert len(set(looks)) == len(looks)
    for one in found:
        assert one.behind <= one.error + 1e-12
        assert isinstance(one.tree, SoftTreeClassifier)
        assert one.tree.score(X, y) > 0.65
        assert one.features == tuple(one.tree.feature_names_in_[one.tree.selected_features_])
        assert not set(one.new_features) & set(search.feature_names_in_[search.selected_features_])


def test_a_twin_takes_the_place_of_its_feature(search):
    """The folds never met it: it is found by leaving out the feature of the chosen tree."""
    assert search.feature_names_in_[search.selected_features_].tolist() == ["heat"]
    assert ("twin",) in [one.features for one in search.alternatives(4)]


def test_alternatives_read_well_and_are_fitted_trees(search, tmp_path):
    X, _ = twins()
    found = search.alternatives(2)
    assert repr(found).startswith("chosen tree: ") and " within one standard error" in repr(found)
    assert "class hot" in repr(found[0])
    frame = found.to_frame()
    assert len(frame) == 1 + len(found) and frame["behind"][0] == 0.0
    save_model(found[0].tree, tmp_path / "other.json")
    loaded = load_model(tmp_path / "other.json")
    assert_array_equal(loaded.predict(X), found[0].tree.predict(X))
    assert export_text(loaded) == export_text(found[0].tree)


def test_what_comes_back_in_resamples(search):
    X, y = twins()
    found = search.stability(X, y, n_resamples=6)
    assert max(found.features, key=found.features.get) in ("heat", "twin")
    assert all(0 < share <= 1 for share in found.features.values())
    least = {(a, b): min(found.features[a], found.features[b]) for a, b in found.pairs}
    assert all(share <= least[pair] for pair, share in found.pairs.items())
    assert 0.7 < found.agreement <= 1 and 0.7 < found.agreement_between <= 1
    assert found.n_resamples == 6 and "6 resamples" in repr(found)
    frame = found.to_frame("features")
    own = set(search.feature_names_in_[search.selected_features_])
    assert set(frame["features"][frame["in_tree"]]) == own & set(frame["features"])
    assert repr(search.stability(X, y, n_resamples=6)) == repr(found)
    with pytest.raises(ValueError, match="'features', 'pairs' or 'questions'"):
        found.to_frame("leaves")
    plain = SoftTreeClassifier(n_starts=1, random_state=0).fit(X[["heat", "noise"]].to_numpy(), y)
    assert "x0" in plain.stability(X[["heat", "noise"]].to_numpy(), y, n_resamples=3).features


def test_the_page_of_a_search_shows_other_trees(search):
    X, y = twins()
    page = search.report(X, y)
    assert "Other trees as good" in page.html and "Alternative 1: " in page.html
    assert "Other trees as good" not in search.best_estimator_.report(X, y).html


def test_copies_and_files_do_not_hold_the_rows(search):
    for made in (pickle.loads(pickle.dumps(search)), copy.copy(search)):
        with pytest.raises(ValueError, match="fit again"):
            made.alternatives()
    assert len(pickle.dumps(search)) < 50_000
    with pytest.raises(ValueError, match="n must be"):
        search.alternatives(0)
