"""The search around the best trees: when there is one, what it keeps, and how it stops."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np
import pytest

from native_cases import SoMany, make_draws, make_engine, make_problem, solve, solved_point
from softsplit.problem.penalties import inverse_power
from softsplit.problem.strength_bound import all_zero_tree
from softsplit.solvers import BasinHoppingSolver, Budget, Solver, Status
from softsplit.solvers.active_set.state import (
    EVALUATE_ONLY,
    POLISH,
)
from softsplit.solvers.base import Draw, OutOfBudget
from softsplit.solvers.basin_hopping.budget import (
    ClockOptions,
    IterationBudget,
)
from softsplit.solvers.basin_hopping.run import DescentRun
from softsplit.solvers.basin_hopping.search import (
    BasinHopping,
    PerturbationSchedule,
)
from softsplit.solvers.starts.rules import draw_start
from softsplit.solvers.stopping import Stop
from softsplit.training.multistart import NoFeasibleTreeError, multistart, search_around
from softsplit.tree.parameters import Block, TreeParameters


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


@pytest.mark.parametrize(
    "move", BasinHopping().perturbations[:-2], ids=lambda move: type(move).__name__
)
def test_a_hop_in_slices_of_one_step_has_the_bits_of_a_hop_in_one_go(move):
    problem = make_problem(global_=0.2, rows=150, rate=0.3)
    point, aim = solved_point(problem), problem.objective(solve(problem).parameters)
    for hops in (BasinHopping(hopeless=1e9, slow=1e9), BasinHopping(hopeless=1e9, slow=0.5)):
        ends = []
        for seconds in (1e9, 0.0):
            clock = ClockOptions(slice_seconds=seconds)
            run = DescentRun(problem, IterationBudget(Budget(), 10_000, clock=clock))
            value, end = hops.descend(run, move.apply(run, point, Draw(7), 0), aim)
            ends.append((value, *end, run.work.iterations))
        for once, sliced in zip(*ends, strict=True):
            np.testing.assert_array_equal(once, sliced)


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


def test_the_search_of_the_solver_hops_from_its_front_and_finishes():
    problem = make_problem(global_=0.2, rows=120, features=6)
    solver = BasinHoppingSolver()
    front = [solve(problem, seed, rule="points") for seed in range(2)]
    front.sort(key=lambda s: s.objective)
    found = solver.improve(problem, front, make_draws(), SoMany(40), Budget())
    assert found.objective <= front[0].objective
    assert found.violation <= 1e-6
    assert solver.improve(problem, front, make_draws(), SoMany(0), Budget()) is front[0]


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


def test_a_search_in_a_restricted_problem_moves_only_its_block():
    whole = make_problem(depth=3, rows=150, global_=0.1)
    anchor = solve(whole, rule="points").parameters
    part = whole.restrict(Block((2, 5, 6), (4, 5, 6, 7)), anchor)
    rough = TreeParameters(
        np.where(part.free_branches, 0.0, anchor.weights), anchor.thresholds, anchor.leaf_values
    )
    first = solve(part, rule="points")
    assert first.status.usable
    found = search_around(part, BasinHoppingSolver(), [first], seed=1)
    fixed = [0, 1, 3, 4]
    np.testing.assert_array_equal(found.parameters.weights[:, fixed], anchor.weights[:, fixed])
    np.testing.assert_array_equal(found.parameters.leaf_values[:, :4], anchor.leaf_values[:, :4])
    assert found.objective <= first.objective
    assert found.objective <= part.objective(part.best_leaves(rough)) + 1e-6
