"""The search around the best trees: when there is one, what it keeps, and how it stops."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris

from native_cases import SoMany, make_draws, make_engine, make_problem, solve, solved_point
from slow_cases import examples
from softsplit import SoftTreeClassifier
from softsplit.problem.penalties import inverse_power
from softsplit.problem.strength_bound import all_zero_tree
from softsplit.solvers import BasinHoppingSolver, Budget, Solver, Status
from softsplit.solvers.active_set.state import EVALUATE_ONLY, POLISH
from softsplit.solvers.base import OutOfBudget
from softsplit.solvers.basin_hopping.budget import IterationBudget
from softsplit.solvers.basin_hopping.run import DescentRun
from softsplit.solvers.basin_hopping.search import BasinHopping, PerturbationSchedule
from softsplit.solvers.starts.plans import BOTH, draw_plan, sides_of, structure
from softsplit.solvers.starts.rules import draw_start
from softsplit.solvers.stopping import GIVEN_UP, EndPoints, Stop
from softsplit.training.best import NoFeasibleTreeError
from softsplit.training.multistart import multistart, search_around
from softsplit.tree.parameters import Topology


def copied(points):
    return [(theta.copy(), leaves.copy()) for theta, leaves in points]


# --- the search -----------------------------------------------------------------------------


@dataclass
class Watched:
    """A move that hands on what it saw; ``do`` is called with the number of the call."""

    do: object
    seen: list = field(default_factory=list)

    def apply(self, engine, point, draw, turn):
        self.seen.append((point, draw, turn))
        return self.do(engine, point, len(self.seen) - 1)


def better_tree(problem, point, engine):
    """A point from which a descent ends well below ``point``."""
    found = solve(problem, 3)
    assert found.objective < engine.descend(*point, EVALUATE_ONLY) - 0.1
    return found


def bad_points(problem, count=2):
    """Points that are easy to improve."""
    trees = [
        draw_start("uniform", problem, np.random.default_rng(seed)).parameters
        for seed in range(count)
    ]
    return [(tree.splits, problem.best_leaves(tree).leaf_values) for tree in trees]


@pytest.mark.parametrize("seed", range(4))
def test_the_search_is_never_worse_and_deterministic(seed):
    problem = make_problem(seed, rows=100, features=5, global_=0.2)
    points = [solved_point(problem, s) for s in range(3)]
    ends = []
    for _ in range(2):
        engine = make_engine(problem)
        lowest = min(engine.descend(*point, EVALUATE_ONLY) for point in points)
        given = copied(points)
        end = BasinHopping().improve(engine, given, make_draws(), SoMany(24))
        assert engine.descend(*end, EVALUATE_ONLY) <= lowest
        for point, old in zip(given, points, strict=True):
            np.testing.assert_array_equal(point[0], old[0])
            np.testing.assert_array_equal(point[1], old[1])
        ends.append(end)
    np.testing.assert_array_equal(ends[0][0], ends[1][0])
    np.testing.assert_array_equal(ends[0][1], ends[1][1])


def test_moves_that_succeed_come_more_often_and_none_is_forgotten():
    choice = PerturbationSchedule([1.0, 1.0, 1.0])
    seen = []
    for _ in range(300):
        move = choice.next()
        seen.append(move)
        choice.learn(move, improved=move == 1 and len(seen) % 2 == 0, work=10 if move else 40)
    assert sorted(seen[:3]) == [0, 1, 2]
    counts = np.bincount(seen)
    assert counts[1] > 3 * counts[2] > 0
    assert counts[2] > counts[0] > 0  # the same success for four times the work
    for move in (0, 1):
        choice.leave_out(move)
    assert {choice.next() for _ in range(5)} == {2}
    choice.leave_out(2)
    assert choice.is_empty


def test_compiled_leaf_choice_is_that_of_any_loss():
    """Descents of the expected cost choose leaves in compiled code, all others in Python."""
    changed = 0  # where rates bind, the cheapest leaves are rarely better
    for seed, limits, rate in product(range(4), (EVALUATE_ONLY, POLISH), (0.0, 0.3)):
        problem = make_problem(global_=0.2, rate=rate)
        tree = draw_start("uniform", problem, np.random.default_rng(seed)).parameters
        ends = []
        for in_python in (False, True):
            engine, theta = make_engine(problem), tree.splits
            leaves = np.roll(tree.leaf_values, seed, axis=0)
            if in_python:
                engine._costs = np.zeros((0, 0))
            value = engine.descend(theta, leaves, limits, choose=True)
            ends.append((value, engine.chosen_value, theta, leaves))
        for one, other in zip(*ends, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
        changed += not np.array_equal(leaves, np.roll(tree.leaf_values, seed, axis=0))
    assert 0 < changed < 16


@pytest.mark.parametrize("error", [OutOfBudget, KeyboardInterrupt])
def test_a_search_that_is_stopped_keeps_the_best(error):
    problem = make_problem(global_=0.2)
    points = bad_points(problem)
    good = better_tree(problem, points[0], make_engine(problem))

    def improve_then_stop(engine, point, number):
        if number == 1:
            raise error
        return (good.parameters.splits, good.parameters.leaf_values)

    budget = Budget()
    engine = DescentRun(problem, IterationBudget(budget, 10_000))
    ends, hops = SoMany(9), BasinHopping(perturbations=(Watched(improve_then_stop),))
    end = hops.improve(engine, points, make_draws(), ends)
    assert ends.stop is (Stop.MAX_ITER if error is OutOfBudget else Stop.INTERRUPTED)
    assert engine.descend(*end, EVALUATE_ONLY) <= good.objective + 1e-6
    assert budget.stopped == (error is KeyboardInterrupt)


# --- the solver's search --------------------------------------------------------------------


def test_the_search_ends_no_worse_than_the_all_zero_tree():
    """Slopes at zero are so large that no descent finds the way there by itself."""
    problem = make_problem(41, 57, 5, 3, 3, inverse_power(), 0.0, 0.01)
    zero = problem.objective(all_zero_tree(problem))
    solver = BasinHoppingSolver(effort=0.0)
    starts = multistart(problem, solver, n_starts=4, seed=41)
    assert min(s.objective for s in starts) > zero + 1.0
    best = search_around(problem, solver, starts, seed=41)
    assert best.objective <= zero + 1e-5
    assert not np.any(best.parameters.weights)
    assert best.violation <= 1e-6


# --- training.search_around
# ---------------------------------------------------------------------------


@dataclass
class Recorder(Solver):
    """A solver whose search records what it is given."""

    error: type | None = None
    given: list = field(default_factory=list)
    name: str = "recorder"
    searches = True

    def solve(self, problem, start, budget):
        raise AssertionError("a search asks for no start")

    def least_chance(self, problem):
        return 0.06

    def improve(self, problem, front, draws, ends, budget, report):
        self.given.append((front, [next(draws) for _ in range(5)], ends))
        if self.error is not None:
            raise self.error
        return front[0]


class WithoutSearch(BasinHoppingSolver):
    searches = False


def same_tree(one, other):
    return one.parameters is other.parameters


@pytest.fixture(scope="module")
def solutions():
    """Feasible solutions of different objectives; the problem comes first."""
    problem = make_problem(global_=0.2)
    found = [solve(problem, seed, rule="points") for seed in range(8)]
    distinct = {round(s.objective, 4): s for s in found}
    assert len(distinct) >= 4
    return problem, [distinct[key] for key in sorted(distinct)][:4]


def test_only_usable_and_different_solutions_are_hopped_from(solutions):
    problem, (one, two, three, four) = solutions
    broken = replace(one, status=Status.INFEASIBLE, objective=-1.0)
    failed = replace(one, status=Status.FAILED, objective=-2.0)
    twin = replace(two, objective=two.objective * (1 + 1e-9))
    solver = Recorder()
    best = search_around(problem, solver, [four, broken, three, twin, two, failed, one])
    front, _, ends = solver.given[0]
    assert same_tree(best, one)
    assert [s.objective for s in front] == [s.objective for s in (one, two, three, four)]
    assert ends.least == pytest.approx(0.06 / 7)  # the more starts, the longer the search
    told = best.search
    assert (told.n_starts, told.n_hops, told.n_ends, told.n_given_up) == (7, 0, 4, 2)


def test_no_usable_solution_is_one_clear_sentence(solutions):
    problem, found = solutions
    broken = [replace(s, status=Status.INFEASIBLE, violation=0.25) for s in found]
    with pytest.raises(
        NoFeasibleTreeError,
        match=r"none of 4 starts ended in a tree that meets the constraints \(smallest violation "
        r"0\.25, ended as INFEASIBLE[^;]*\); raise depth or n_starts\.",
    ):
        search_around(problem, BasinHoppingSolver(), broken)


def test_an_interrupted_search_returns_the_best_start(solutions):
    problem, found = solutions
    budget = Budget()
    best = search_around(problem, Recorder(KeyboardInterrupt), found, budget=budget)
    assert same_tree(best, found[0])
    assert best.search.stop is Stop.INTERRUPTED
    assert budget.stopped


def test_no_search_without_time_or_by_a_solver_that_cannot(solutions):
    problem, found = solutions
    solver = Recorder()
    assert same_tree(search_around(problem, solver, found, budget=Budget(time_limit=0.0)), found[0])
    assert not solver.given
    best = search_around(problem, WithoutSearch(), found)
    assert same_tree(best, found[0])
    assert best.search.stop is Stop.NO_SEARCH


# What the ends of descents say about trees not found yet, and the effort that follows from it.


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


def test_a_solver_that_does_not_search_takes_no_effort(iris):
    with pytest.raises(
        ValueError,
        match=r"^solver 'decomposition\(native\)' knows no effort; use solver='native', or raise "
        r"n_starts\.$",
    ):
        SoftTreeClassifier(loss="cost", solver="decomposition", effort="fast").fit(*iris)


# Starts of different structure, the race between them, and hops around the best tree.


def test_mirrored_labellings_are_one_structure():
    assert structure((0, 1, 0, 2)) == structure((2, 0, 1, 0)) == structure((0, 2, 0, 1))
    assert structure((0, 1, 0, 2)) != structure((0, 0, 1, 2))


@pytest.mark.parametrize(("classes", "depth"), [(2, 1), (3, 2), (4, 2), (5, 3), (8, 3), (2, 3)])
def test_plans_give_every_class_a_leaf(classes, depth):
    rng = np.random.default_rng(0)
    apart = rng.uniform(size=(classes, classes)).tolist()
    for _ in range(50):
        plan = draw_plan(Topology(depth), apart, rng)
        assert set(plan.leaf_labels) == set(range(classes))
        assert len(plan.leaf_labels) == 2**depth


def test_rival_starts_have_different_structures():
    problem = make_problem(classes=3, depth=2)
    start = draw_start("groups", problem, np.random.default_rng(0), candidates=5)
    keys = {
        structure(tuple(tree.leaf_values.argmax(axis=0).tolist()))
        for tree in (start.parameters, *start.candidates)
    }
    assert len(keys) == 6  # all there are for three classes on four leaves


@examples(60)
@given(seed=st.integers(0, 10**6), depth=st.integers(1, 4), classes=st.integers(2, 6))
def test_a_plan_can_be_read_off_its_leaves(seed, depth, classes):
    """Drawn plans lead a class exactly to the sides on which it has leaves."""
    topology, rng = Topology(depth), np.random.default_rng(seed)
    classes = min(classes, topology.n_leaves)
    apart = rng.uniform(size=(classes, classes)).tolist()
    plan = draw_plan(topology, apart, rng)
    read = np.empty_like(plan.sides)
    sides_of(np.array(plan.leaf_labels), read)
    np.testing.assert_array_equal(read, plan.sides)
    for t in range(topology.n_branches):
        left, right = (
            {plan.leaf_labels[leaf] for leaf in topology.leaves_below(child)}
            for child in (2 * t + 1, 2 * t + 2)
        )
        assert {k for k in left | right if read[t, k] == BOTH} == left & right


# Budgets: Ctrl-C stops them, and is raised on only while there is nothing to keep.


def test_ctrl_c_ends_the_block_and_stops_the_budget():
    budget, kept = Budget(), [1]
    with budget.interruptible(kept):
        raise KeyboardInterrupt
    assert budget.stopped and budget.exhausted and budget.verdict is Status.INTERRUPTED


def test_ctrl_c_is_raised_on_while_nothing_is_kept():
    budget = Budget()
    with pytest.raises(KeyboardInterrupt), budget.interruptible([]):
        raise KeyboardInterrupt
    assert budget.stopped


def test_what_numba_makes_of_ctrl_c_counts_too():
    budget = Budget()
    with budget.interruptible():
        raise SystemError("in a callback") from KeyboardInterrupt()
    assert budget.stopped


@pytest.mark.parametrize("error", [SystemError("of another kind"), ValueError("bad")])
def test_other_errors_pass(error):
    budget = Budget()
    with pytest.raises(type(error)), budget.interruptible([1]):
        raise error
    assert not budget.stopped
