"""What the ends of descents say about trees not found yet, and the effort that follows from it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris

from softsplit import SoftTreeClassifier
from softsplit.solvers import EliminationSolver
from softsplit.solvers.stopping import GIVEN_UP, EndPoints, Stop
from softsplit.training.precompile import tiny_likelihoods


def counted(objectives, **options):
    ends = EndPoints(**options)
    for objective in objectives:
        ends.hop_ended(objective)
    return ends


def test_the_chance_is_that_of_a_record_where_all_ends_differ_and_small_where_all_agree():
    assert counted(np.arange(1, 21.0)).chance == pytest.approx(1 / 19)
    assert counted([3.0] * 20).chance == pytest.approx(1 / (20 * 19))
    ends = counted([3.0] * 20)
    assert ends.unseen == pytest.approx(2 / (20 * 19))
    assert counted([1.0]).chance == counted([]).chance == 1.0


def test_the_estimates_hold_for_independent_draws():
    """Trees drawn by unknown shares: the share of those not seen, and of those that are better."""
    rng = np.random.default_rng(0)
    guessed, unseen, chance, better = [], [], [], []
    for _ in range(400):
        total = rng.integers(1, 100)
        shares = rng.dirichlet(np.ones(total))  # as likely as any other shares
        seen = rng.choice(total, size=40, p=shares)
        ends = counted(1.0 + seen)
        guessed.append(ends.unseen)
        unseen.append(shares[np.setdiff1d(np.arange(total), seen)].sum())
        chance.append(ends.chance)
        better.append(shares[: seen.min()].sum())
    assert np.mean(guessed) == pytest.approx(np.mean(unseen), rel=0.3)
    assert np.mean(chance) == pytest.approx(np.mean(better), rel=0.4)


def test_close_objectives_are_one_tree_and_descents_given_up_have_no_end():
    ends = counted([2.0, 2.00001, 1.99999, 3.0, GIVEN_UP, GIVEN_UP, 1e-9, 0.0], resolution=1e-6)
    told = ends.summary()
    assert (told.n_hops, told.n_ends, told.n_given_up, told.n_best) == (8, 3, 2, 2)
    assert ends.chance == pytest.approx(3 / (8 * 5))
    assert "2 were abandoned" in str(told)
    assert counted([1.0] + [GIVEN_UP] * 200).chance == pytest.approx(1 / 200)  # it comes to an end


def test_the_search_is_told_in_a_sentence():
    ends = EndPoints(least=0.05)
    for objective in (2.0, 1.0, 2.0):
        ends.start_ended(objective)
    assert not ends.unlikely
    for _ in range(7):
        ends.hop_ended(1.0)
    assert ends.unlikely
    ends.stop = Stop.UNLIKELY
    assert str(ends.summary()) == (
        "3 starts and 7 hops ended in 2 different trees, 8 of them in the best; a further descent "
        "would hardly lead lower (estimated chance 2.2 %)"
    )


# --- effort ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


def test_more_effort_searches_longer_and_finds_no_worse_a_tree(iris):
    searches, objectives = [], []
    for effort in ("fast", "balanced", 5):
        tree = SoftTreeClassifier(
            loss="cost", global_strength=1.0, n_starts=4, random_state=0, effort=effort
        ).fit(*iris)
        told = tree.solution_.search
        assert told.n_starts == 4
        assert told.stop is Stop.UNLIKELY
        searches.append(told)
        objectives.append(tree.objective_)
    hops = [told.n_hops for told in searches]
    assert hops == sorted(hops)
    assert hops[0] < hops[2]
    assert np.all(np.diff(objectives) <= 1e-6 * objectives[0])  # the tolerance of a fit


def test_by_likelihood_more_trees_race_and_the_usual_effort_changes_nothing(iris):
    tree = SoftTreeClassifier(n_starts=2, random_state=0).fit(*iris)
    told = tree.solution_.search
    assert (told.n_starts, told.n_hops, told.stop) == (2, 0, Stop.NO_SEARCH)
    problem = tiny_likelihoods()[0]
    efforts = [0.01, 0.2, 1.0, 5.0, 1e9]
    racing = [1 + EliminationSolver().with_effort(one).n_candidates(problem) for one in efforts]
    assert racing == [1, 1, 2, 10, 100]


def test_a_solver_that_does_not_search_takes_no_effort(iris):
    with pytest.raises(
        ValueError,
        match=r"^solver 'decomposition\(native\)' knows no effort; use solver='native', or raise "
        r"n_starts\.$",
    ):
        SoftTreeClassifier(loss="cost", solver="decomposition", effort="fast").fit(*iris)
