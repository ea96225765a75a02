"""How trees by likelihood are chosen: values of samples, first folds, rare classes, groups."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import make_classification
from sklearn.metrics import balanced_accuracy_score, log_loss
from sklearn.model_selection import GroupKFold, train_test_split

from slow_cases import examples
from softsplit import SoftTreeClassifierCV
from softsplit.report.choice_text import describe_choice
from softsplit.selection.folds import make_splits
from softsplit.selection.held_out import valued_samples
from softsplit.selection.rare_classes import FACTORS, decision_factors, prediction_costs
from softsplit.selection.scoreboard import PRICES, Candidate, FoldScore, Scoreboard, Valued

TREE = None


def test_values_are_minus_the_log_loss() -> None:
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.ones(3), size=50).T
    labels, weights = rng.integers(3, size=50), rng.uniform(size=50)
    found = valued_samples(shares, labels, weights)
    loss = log_loss(labels, shares.T, sample_weight=weights, labels=[0, 1, 2])
    assert np.average(found.values, weights=found.weights) == pytest.approx(-loss)


def test_a_feature_is_bought_where_it_saves_its_price() -> None:
    """The selections are points on one trade: each takes the feature that pays at its price."""
    board, base = Scoreboard(2, unit=0.5), np.full(100, -0.4)
    keys = [(_candidate(), fraction) for fraction in (0.3, 0.1, 0.01)]
    gains = (0.0, 0.5 * (PRICES["default"] + PRICES["sparse"]) / 2, 0.5 * PRICES["default"] / 2)
    total = 0.0
    for size, (key, gain) in enumerate(zip(keys, gains, strict=True)):
        total += gain
        for fold, part in enumerate(np.split(base + total, 2)):
            score = FoldScore(TREE, 0.5, size, size, 0.0, Valued(part, np.ones(50)), price=size)
            board.add(*key, fold, score)
    assert [board.chosen(name) for name in ("sparse", "default", "best")] == keys
    for name in PRICES:
        priced = board.table(name)["priced_log_loss"]
        assert list(board.folds)[int(np.argmin(priced))] == board.chosen(name)


def _candidate(depth: int = 1, ridge: float = 1.0) -> Candidate:
    return Candidate("standard", depth, "auto", "count", "size", "log", ridge)


def _judged(board: Scoreboard, key: tuple[Candidate, float], values: np.ndarray) -> None:
    for fold, part in enumerate(np.split(values, board.n_folds)):
        samples = Valued(part, np.ones(len(part)))
        board.add(*key, fold, FoldScore(TREE, float(part.mean()), 3, 3, 0.0, samples))


def test_the_error_is_that_of_the_difference_over_samples() -> None:
    rng = np.random.default_rng(1)
    board, base = Scoreboard(5), rng.normal(size=500)
    best, near, far = ((_candidate(depth), 0.01) for depth in (1, 2, 3))
    noise = rng.normal(scale=0.2, size=500)
    noise -= noise.mean()
    error = noise.std() / np.sqrt(500)
    _judged(board, best, base)
    _judged(board, near, base + noise - 0.9 * error)
    _judged(board, far, base + noise - 1.1 * error)
    assert board.best() == best
    assert board.close(near, best)
    assert not board.close(far, best)


def test_a_candidate_that_is_behind_on_the_first_folds_is_not_hopeful() -> None:
    rng = np.random.default_rng(2)
    board, base = Scoreboard(5), rng.normal(size=500)
    _judged(board, (_candidate(1), 0.01), base)
    for depth, lost in ((2, 0.5), (3, 0.0)):
        for fold in range(2):
            part = base[100 * fold : 100 * (fold + 1)] - lost + rng.normal(scale=0.1, size=100)
            samples = Valued(part, np.ones(100))
            score = FoldScore(TREE, 0.0, 3, 3, 0.0, samples)
            board.add(_candidate(depth), 0.01, fold, score)
    assert not board.hopeful(_candidate(2), 2)
    assert board.hopeful(_candidate(3), 2)


@examples(50)
@given(seed=st.integers(0, 2**32 - 1), n_classes=st.integers(2, 4))
def test_calls_by_costs_are_calls_by_factors(seed: int, n_classes: int) -> None:
    rng = np.random.default_rng(seed)
    factors = rng.choice(FACTORS, size=n_classes)
    shares = rng.dirichlet(np.ones(n_classes), size=20)
    by_costs = np.argmin(shares @ prediction_costs(factors), axis=1)
    np.testing.assert_array_equal(by_costs, np.argmax(factors * shares, axis=1))


def test_only_rare_classes_get_a_factor_and_accuracy_hardly_falls() -> None:
    rng = np.random.default_rng(3)
    n = 4000
    labels = (rng.uniform(size=n) < 0.05).astype(int)
    score = rng.normal(size=n) + 2.0 * labels
    odds = np.exp(2.0 * score - 2.0) * 0.05 / 0.95
    shares = np.vstack([1 / (1 + odds), odds / (1 + odds)])

    def predicted(costs):
        return np.argmin(costs.T @ shares, axis=0)

    factors = decision_factors(predicted, 2, labels, np.ones(n))
    assert factors is not None and factors[0] == 1.0 and factors[1] > 1.0
    plain, moved = shares.argmax(axis=0), (factors[:, None] * shares).argmax(axis=0)
    assert balanced_accuracy_score(labels, moved) > balanced_accuracy_score(labels, plain) + 0.01
    assert np.mean(moved == labels) > np.mean(plain == labels) - 0.005
    assert decision_factors(predicted, 2, rng.integers(2, size=n), np.ones(n)) is None
    assert decision_factors(predicted, 2, labels, np.ones(n), lambda: True) is None  # no time
    asked = iter([False] * 3 + [True])
    some = decision_factors(predicted, 2, labels, np.ones(n), lambda: next(asked))
    assert some is not None and some[1] <= FACTORS[2]


def test_rare_classes_are_called_more_often_by_default() -> None:
    X, y = make_classification(
        1500, 8, n_informative=4, weights=[0.95], flip_y=0.02, class_sep=0.8, random_state=6
    )
    X, Xt, y, yt = train_test_split(X, y, stratify=y, random_state=0)
    auto = SoftTreeClassifierCV(random_state=0).fit(X, y)
    plain = SoftTreeClassifierCV(random_state=0, rare_classes="argmax").fit(X, y)
    # They are consistent with the class, which is all that may part them.
    np.testing.assert_allclose(auto.predict_proba(Xt), plain.predict_proba(Xt), atol=0.02)
    assert plain.best_params_["cost_matrix"] is None
    factor = auto.best_params_["cost_matrix"][1, 0]
    assert describe_choice(auto).endswith(
        "; to predict, the probabilities of rare classes are multiplied by factors chosen on "
        f"held-out rows: 1 x {factor:.3g}"
    )
    assert "multiplied" not in describe_choice(plain)
    ours, theirs = auto.predict(Xt), plain.predict(Xt)
    assert ours.sum() > theirs.sum()
    assert balanced_accuracy_score(yt, ours) >= balanced_accuracy_score(yt, theirs)


def test_no_group_is_on_both_sides() -> None:
    rng = np.random.default_rng(0)
    X, y, groups = rng.normal(size=(120, 2)), rng.integers(2, size=120), rng.integers(20, size=120)
    for train, test in make_splits(5, X, y, 0, groups):
        assert not set(groups[train]) & set(groups[test])
    fitted = SoftTreeClassifierCV(random_state=0, cv=GroupKFold(3)).fit(X, y, groups=groups)
    assert fitted.n_splits_ == 3
