"""Hops: what each move promises, the search made of them, and when there is one."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from brute_force import expected_cost
from native_cases import make_engine, make_problem, solve
from softsplit.loss import ExpectedCost
from softsplit.penalties import PenaltyPair, exponential, inverse_power, linear
from softsplit.problem import TrainingProblem
from softsplit.samples import Samples
from softsplit.solvers import Budget, NativeSolver, Status
from softsplit.solvers.base import Draw
from softsplit.solvers.engine import Engine, Meter, OutOfBudget, pack, unpack
from softsplit.solvers.hops import (
    Fresh,
    Hops,
    Overshoot,
    Regrow,
    Relabel,
    Reweigh,
    Warmed,
    refit,
)
from softsplit.solvers.stages import LOOK, LogWarmUp
from softsplit.starts import draw_hops, draw_start
from softsplit.strength_bound import all_zero_tree
from softsplit.training import NoFeasibleTreeError, hop, multistart
from softsplit.tree import Block, Topology, TreeParameters

MOVES = [Fresh(), Warmed(), Regrow(), Relabel(), Reweigh(), Reweigh(3.0, 2.0), Overshoot()]


def move_id(move):
    return f"{type(move).__name__}-{getattr(move, 'strength', '')}"


def make_draws(problem, count, seed=7):
    return draw_hops(problem, np.random.default_rng(seed), count)


def solved_point(problem, seed=0):
    tree = solve(problem, seed, rule="points").parameters
    return pack(tree), tree.leaf_classes


def copied(points):
    return [(theta.copy(), leaves.copy()) for theta, leaves in points]


# --- moves ----------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("move", MOVES, ids=move_id)
def test_a_move_leaves_the_point_alone_and_stays_in_the_box(move, depth):
    classes = 2 if depth == 1 else 3
    problem = make_problem(depth=depth, classes=classes, overall=0.2)
    point, draw = solved_point(problem), make_draws(problem, 1)[0]
    before = [part.copy() for part in point]
    engine = make_engine(problem)
    moved = move.apply(engine, point, draw, 0)
    for part, old in zip(point, before, strict=True):
        np.testing.assert_array_equal(part, old)
    if moved is None:
        assert depth == 1
        return
    assert moved[0] is not point[0]
    assert np.max(np.abs(moved[0])) <= 1
    np.testing.assert_allclose(moved[1].sum(axis=0), 1)
    assert np.all(moved[1] >= 0)


@pytest.mark.parametrize("move", MOVES, ids=move_id)
def test_a_move_is_a_function_of_point_draw_and_turn(move):
    """Whatever the engine did before: its curvature pairs do not leak into the move."""
    problem = make_problem(overall=0.2)
    point, draws = solved_point(problem), make_draws(problem, 2)
    used = make_engine(problem)
    Overshoot().apply(used, point, draws[1], 2)
    one = move.apply(make_engine(problem), point, draws[0], 1)
    two = move.apply(used, point, draws[0], 1)
    for first, second in zip(one, two, strict=True):
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("move", [Regrow(), Relabel()], ids=move_id)
def test_there_is_nothing_to_regrow_or_relabel_in_a_tree_of_one_branch(move):
    problem = make_problem(classes=2, depth=1)
    point, draw = solved_point(problem), make_draws(problem, 1)[0]
    assert move.apply(make_engine(problem), point, draw, 0) is None


def test_fresh_is_the_drawn_tree_and_warmed_has_a_lower_log_loss():
    problem = make_problem(rows=200)
    draw = make_draws(problem, 1)[0]
    engine = make_engine(problem)
    theta, leaves = Fresh().apply(engine, None, draw, 0)
    np.testing.assert_array_equal(theta, pack(draw.tree))
    np.testing.assert_array_equal(leaves, draw.tree.leaf_classes)
    theta[:] = 0.0  # the draw must survive what is done to its copy
    assert np.any(draw.tree.weights)

    warm = LogWarmUp((4.0,), rounds=3, max_iter=30)
    theta, leaves = Warmed(warm).apply(engine, None, draw, 0)
    weights = problem.samples.weights
    after = engine.descend_log(theta, leaves, LOOK, 4.0, weights)
    soft = 0.98 * draw.tree.leaf_classes + 0.02 / problem.n_classes
    assert after < engine.descend_log(pack(draw.tree), soft, LOOK, 4.0, weights)


@pytest.mark.parametrize(("turn", "expected"), [(0, range(7)), (1, (1, 3, 4)), (2, (2, 5, 6))])
def test_regrow_takes_the_subtrees_in_turn(turn, expected):
    problem = make_problem(depth=3)
    draw = make_draws(problem, 1)[0]
    theta = np.full((7, 5), 0.25)
    for later in (turn, turn + 7):
        moved, _ = Regrow().apply(make_engine(problem), (theta, np.zeros((3, 8))), draw, later)
        changed = np.flatnonzero(np.any(moved != theta, axis=1))
        assert changed.tolist() == list(expected)
        np.testing.assert_array_equal(moved[changed], pack(draw.tree)[changed])


def test_relabel_changes_one_leaf_to_what_costs_least_and_only_the_branch_above_it():
    problem = make_problem(depth=3, rows=150)
    point, draw = solved_point(problem), make_draws(problem, 1)[0]
    theta, leaves = point
    assert set(np.unique(leaves)) == {0.0, 1.0}
    rises = []
    for leaf in range(8):
        for k in range(3):
            other = leaves.copy()
            other[:, leaf] = np.eye(3)[k]
            if leaves[k, leaf] == 0 and np.all(other.sum(axis=1) >= 1):
                rises.append((problem.cost(unpack(theta, other)), k, leaf))
    engine = make_engine(problem)
    for turn, (_, k, leaf) in enumerate(sorted(rises)[:4]):
        moved, labels = Relabel().apply(engine, point, draw, turn)
        expected = leaves.copy()
        expected[:, leaf] = np.eye(3)[k]
        np.testing.assert_array_equal(labels, expected)
        changed = np.flatnonzero(np.any(moved != theta, axis=1))
        assert set(changed) <= {(7 + leaf - 1) // 2}
        again = Relabel().apply(engine, point, draw, turn + 4)
        np.testing.assert_array_equal(again[0], moved)


def test_relabel_keeps_the_last_leaf_of_a_class():
    problem = make_problem(classes=4, depth=2)
    draw = make_draws(problem, 1)[0]
    point = (pack(draw.tree), np.eye(4))
    assert Relabel().apply(make_engine(problem), point, draw, 0) is None


def test_relabel_leaves_what_a_restricted_problem_holds_fixed():
    whole = make_problem(depth=3, rows=150)
    point, draw = solved_point(whole), make_draws(whole, 1)[0]
    part = whole.restrict(Block((1, 3, 4), (0, 1, 2, 3)), unpack(*point))
    for turn in range(4):
        moved = Relabel().apply(make_engine(part), point, draw, turn)
        np.testing.assert_array_equal(moved[1][:, 4:], point[1][:, 4:])
    only_leaves = whole.restrict(Block((), tuple(range(8))), unpack(*point))
    moved = Relabel().apply(make_engine(only_leaves), point, draw, 0)
    np.testing.assert_array_equal(moved[0], point[0])
    nothing = whole.restrict(Block((0,), ()), unpack(*point))
    assert Relabel().apply(make_engine(nothing), point, draw, 0) is None


def test_a_warm_up_leaves_fixed_leaves_alone():
    whole = make_problem()
    start = draw_start("points", whole, np.random.default_rng(0)).parameters
    part = whole.restrict(Block((0, 1, 2), (0, 1)), start)
    leaves = LogWarmUp().apply(make_engine(part), pack(start), start.leaf_classes)
    np.testing.assert_array_equal(leaves[:, 2:], start.leaf_classes[:, 2:])
    assert np.any(leaves[:, :2] != start.leaf_classes[:, :2])


def test_reweigh_follows_its_seed_and_the_power_of_the_weights():
    problem = make_problem(surrogate=linear(), overall=0.05, rows=120)
    point, draw = solved_point(problem), make_draws(problem, 1)[0]
    ends = {
        name: move.apply(make_engine(problem), point, Draw(draw.tree, seed), 0)[0]
        for name, move, seed in [
            ("one", Reweigh(), 1),
            ("two", Reweigh(), 2),
            ("power", Reweigh(power=2.0), 1),
            ("plain", Reweigh(power=0.0), 1),
            ("strong", Reweigh(strength=50.0), 1),
        ]
    }
    assert np.any(ends["one"] != ends["two"])
    assert np.any(ends["one"] != ends["power"])
    # All weights one: a descent on the problem itself, from a point where it has ended.
    before, after = (problem.objective(unpack(t, point[1])) for t in (point[0], ends["plain"]))
    assert after <= before + 1e-9
    assert after == pytest.approx(before, rel=1e-2)
    sizes = {name: np.sum(np.abs(theta[:, :-1])) for name, theta in ends.items()}
    assert sizes["strong"] < 0.9 * sizes["one"]


def test_overshoot_drops_features_and_takes_its_factors_in_turn():
    problem = make_problem(features=8, overall=0.15, rows=120)
    point, draw = solved_point(problem), make_draws(problem, 1)[0]
    engine = make_engine(problem)

    def used(theta):
        return np.sum(np.any(theta[:, :-1] != 0, axis=0))

    ends = [Overshoot((1.0, 30.0)).apply(engine, point, draw, turn)[0] for turn in range(3)]
    assert used(ends[1]) < used(point[0])
    np.testing.assert_array_equal(ends[0], ends[2])
    assert used(ends[0]) > used(ends[1])


# --- refit ----------------------------------------------------------------------------------


def line_problem(X, y, weight=None, depth=1, steepness=512.0):
    return TrainingProblem(
        Samples.from_arrays(np.atleast_2d(X).T, np.asarray(y), 2, weight),
        Topology(depth),
        ExpectedCost.uniform(2),
        PenaltyPair.of(exponential()),
        np.zeros(2),
        steepness,
    )


def cost_by_hand(problem, theta, leaves):
    samples = problem.samples
    return expected_cost(
        samples.features.T.tolist(),
        samples.labels.tolist(),
        samples.weights.tolist(),
        theta[:, :-1].T.tolist(),
        theta[:, -1].tolist(),
        leaves.tolist(),
        problem.loss.costs.tolist(),
        problem.topology.depth,
        problem.steepness,
    )


def test_a_refitted_stump_is_the_best_of_all_cuts_of_a_line():
    """Class 1 above 0.6, but for a light row: cuts tried one by one, in both directions."""
    X = np.array([0.05, 0.2, 0.3, 0.45, 0.55, 0.7, 0.8, 0.95])
    y = np.array([0, 0, 1, 0, 0, 1, 1, 1])
    weight = np.array([1, 1, 0.2, 1, 1, 1, 1, 1.0])
    problem, leaves = line_problem(X, y, weight), np.eye(2)
    cuts = [
        cost_by_hand(problem, np.array([[sign, sign * cut]]), leaves)
        for sign in (-1.0, 1.0)
        for cut in np.arange(0.01, 1.0, 0.02)
    ]
    engine = make_engine(problem)
    theta = np.array([[0.5, 0.1]])  # sends nearly all rows to the left
    engine.descend(theta, leaves, LOOK)
    found = refit(engine, leaves, 0)
    assert found[0] < 0  # class 0 sits on the left leaf: small values go left
    assert 0.55 < found[1] / found[0] < 0.7
    # The gates of a regression are soft: sharpened they cost what the best cut costs.
    sharp = (found / np.max(np.abs(found)))[None, :]
    assert cost_by_hand(problem, sharp, leaves) <= min(cuts) + 1e-3
    assert min(cuts) == pytest.approx(0.1, abs=1e-3)


def test_refit_sends_rows_where_the_rest_of_the_tree_serves_them_better():
    """Depth 2 on a line: rows that do not reach the branch have no say, others go home.

    The root sends x > 0.5 to the right. Branch 2 has leaves of class 1 and 0; it should send the
    rows of class 1 among them left, whatever lies below 0.5.
    """
    X = np.array([0.1, 0.2, 0.3, 0.4, 0.6, 0.65, 0.85, 0.95])
    y = np.array([1, 0, 1, 0, 1, 1, 0, 0])
    problem = line_problem(X, y, depth=2)
    leaves = np.array([[1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0]])
    theta = np.array([[-1.0, -0.5], [1.0, 0.25], [1.0, 0.1]])
    engine = make_engine(problem)
    engine.descend(theta, leaves, LOOK)
    found = refit(engine, leaves, 2)
    assert found[0] < 0
    assert 0.65 < found[1] / found[0] < 0.85
    better = theta.copy()
    better[2] = found / np.max(np.abs(found))
    assert cost_by_hand(problem, better, leaves) < cost_by_hand(problem, theta, leaves) - 0.9


def test_refit_returns_nothing_where_no_row_cares_or_all_want_one_side():
    X, y = np.array([0.1, 0.3, 0.6, 0.9]), np.array([0, 0, 1, 1])
    problem = line_problem(X, y, depth=2)
    engine = make_engine(problem)
    theta = np.array([[-1.0, -0.5], [1.0, 0.25], [1.0, 0.1]])
    same = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]])
    engine.descend(theta, same, LOOK)
    assert refit(engine, same, 1) is None  # both leaves are alike
    one_side = np.array([[1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0]])
    engine.descend(theta, one_side, LOOK)
    # The rows that reach branch 1 are of class 0; those of class 1 hardly count there.
    assert refit(engine, one_side, 1) is None


def test_refit_is_finite_with_more_features_than_a_regression_takes():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(40, 400)), np.repeat([0, 1], 20)
    X[:, 0] = np.where(y == 0, 0.1, 0.9)
    problem = TrainingProblem(
        Samples.from_arrays(X, y, 2),
        Topology(2),
        ExpectedCost.uniform(2),
        PenaltyPair.of(exponential()),
        np.zeros(2),
    )
    theta = np.zeros((3, 401))
    theta[0, 0], theta[0, -1] = 1.0, 0.5 / 400
    leaves = np.array([[1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0]])
    engine = make_engine(problem)
    engine.descend(theta, leaves, LOOK)
    for branch in range(3):
        found = refit(engine, leaves, branch)
        assert found is None or np.all(np.isfinite(found))


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
    assert found.objective < engine.descend(*point, LOOK) - 0.1
    return found


def bad_points(problem, count=2):
    """Points that are easy to improve."""
    trees = [
        draw_start("uniform", problem, np.random.default_rng(seed)).parameters
        for seed in range(count)
    ]
    return [(pack(tree), problem.best_leaves(tree).leaf_classes) for tree in trees]


@pytest.mark.parametrize("seed", range(4))
def test_the_search_is_never_worse_and_deterministic(seed):
    problem = make_problem(seed, rows=100, features=5, overall=0.2)
    points = [solved_point(problem, s) for s in range(3)]
    draws = make_draws(problem, 24)
    ends = []
    for _ in range(2):
        engine = make_engine(problem)
        lowest = min(engine.descend(*point, LOOK) for point in points)
        given = copied(points)
        end = Hops().improve(engine, given, draws)
        assert engine.descend(*end, LOOK) <= lowest
        for point, old in zip(given, points, strict=True):
            np.testing.assert_array_equal(point[0], old[0])
            np.testing.assert_array_equal(point[1], old[1])
        ends.append(end)
    np.testing.assert_array_equal(ends[0][0], ends[1][0])
    np.testing.assert_array_equal(ends[0][1], ends[1][1])


def test_nothing_lower_returns_the_very_point():
    problem = make_problem(overall=0.2)
    points = sorted(
        (solved_point(problem, s) for s in range(2)),
        key=lambda point: make_engine(problem).descend(*point, LOOK),
    )
    draws = make_draws(problem, 4)
    nowhere = Watched(lambda *_: None)
    same = Watched(lambda engine, point, number: (point[0].copy(), point[1]))
    for move in (nowhere, same):
        # A second descent would lower the last digits: leave it at none.
        still = Hops(moves=(move,), first=LOOK, second=LOOK)
        assert still.improve(make_engine(problem), points, draws) is points[0]
        assert len(move.seen) == 4
    assert Hops().improve(make_engine(problem), points, ()) is points[0]


def test_trees_take_turns_a_cycle_each_and_are_replaced_by_what_they_become():
    problem = make_problem(overall=0.2)
    points = bad_points(problem)
    engine = make_engine(problem)
    good = better_tree(problem, points[0], engine)

    def improve_first(engine, point, number):
        return (pack(good.parameters), good.parameters.leaf_classes) if number == 0 else None

    one, two = Watched(improve_first), Watched(lambda *_: None)
    draws = make_draws(problem, 8)
    end = Hops(moves=(one, two)).improve(engine, points, draws)
    assert [turn for *_, turn in one.seen] == [0, 0, 1, 1]
    assert [draw for _, draw, _ in one.seen] == list(draws[::2])
    assert one.seen[0][0] is points[0]
    assert two.seen[0][0] is end  # replaced within the same cycle
    assert one.seen[1][0] is points[1]
    assert one.seen[2][0] is end
    assert one.seen[3][0] is points[1]
    assert engine.descend(*end, LOOK) <= good.objective + 1e-6


def test_a_hopeless_hop_is_given_up_after_the_first_descent():
    problem = make_problem(overall=0.2)
    point = solved_point(problem)
    engine = make_engine(problem)
    lowest = engine.descend(*point, LOOK)
    bad = bad_points(problem, 1)[0]
    hops = Hops(first=LOOK, hopeless=0.0)
    assert hops._descend(engine, bad[0].copy(), bad[1], lowest)[0] == np.inf
    generous = replace(hops, hopeless=1e9)
    assert generous._descend(engine, bad[0].copy(), bad[1], lowest)[0] < np.inf


@pytest.mark.parametrize("error", [OutOfBudget, KeyboardInterrupt])
def test_a_search_that_is_stopped_keeps_the_best(error):
    problem = make_problem(overall=0.2)
    points = bad_points(problem)
    good = better_tree(problem, points[0], make_engine(problem))

    def improve_then_stop(engine, point, number):
        if number == 1:
            raise error
        return pack(good.parameters), good.parameters.leaf_classes

    budget = Budget()
    engine = Engine(problem, Meter(budget, 10_000))
    end = Hops(moves=(Watched(improve_then_stop),)).improve(engine, points, make_draws(problem, 9))
    assert engine.descend(*end, LOOK) <= good.objective + 1e-6
    assert budget.cancel.requested == (error is KeyboardInterrupt)


def test_a_search_without_any_budget_returns_the_first_point():
    problem = make_problem(overall=0.2)
    points = [solved_point(problem)]
    engine = Engine(problem, Meter(Budget(time_limit=0.0), 10_000))
    assert Hops().improve(engine, points, make_draws(problem, 9)) is points[0]


# --- the solver's search --------------------------------------------------------------------


def sized(rows, features=30, depth=3):
    """A problem of that size, without the memory it would take."""
    problem = make_problem(depth=depth)
    features = np.broadcast_to(0.5, (features, rows))
    weights = np.broadcast_to(1.0, (rows,))
    return replace(problem, samples=replace(problem.samples, features=features, weights=weights))


def test_many_hops_on_small_problems_none_on_a_million_rows():
    solver = NativeSolver()
    counts = [solver.hops(sized(rows)) for rows in (10, 150, 1000, 10_000, 1_000_000)]
    assert counts[0] == solver.most_hops
    assert counts[1] >= 7
    assert counts[-1] == 0
    assert counts == sorted(counts, reverse=True)
    assert solver.hops(sized(150, depth=8)) < solver.hops(sized(150, depth=2))
    assert replace(solver, most_hops=0).hops(sized(10)) == 0


def test_the_search_of_the_solver_hops_from_its_front_and_finishes():
    problem = make_problem(overall=0.2, rows=120, features=6)
    solver = NativeSolver()
    front = [solve(problem, seed, rule="points") for seed in range(2)]
    front.sort(key=lambda s: s.objective)
    found = solver.improve(problem, front, make_draws(problem, 40), Budget())
    assert found.objective <= front[0].objective
    assert found.violation <= 1e-6
    assert solver.improve(problem, front, (), Budget()) is front[0]


def stopping_finish(error):
    class Stop:
        def apply(self, engine, theta, leaves):
            raise error

    return Stop()


@pytest.mark.parametrize(
    ("error", "status"),
    [(OutOfBudget, Status.MAX_ITER), (KeyboardInterrupt, Status.INTERRUPTED)],
)
def test_a_search_cut_in_its_last_descent_keeps_the_best_and_says_so(error, status):
    problem = make_problem(overall=0.2)
    bad = solve(problem, rule="uniform", max_iter=1)
    budget = Budget()
    solver = NativeSolver(finish=stopping_finish(error))
    found = solver.improve(problem, [bad], make_draws(problem, 16), budget)
    assert found.objective < bad.objective
    assert found.violation <= 1e-6
    assert found.status is status
    assert budget.cancel.requested == (error is KeyboardInterrupt)


def test_the_search_ends_no_worse_than_the_all_zero_tree():
    """Slopes at zero are so large that no descent finds the way there by itself."""
    problem = make_problem(41, 57, 5, 3, 3, inverse_power(), 0.0, 0.01)
    zero = problem.objective(all_zero_tree(problem))
    solver = NativeSolver(most_hops=0)
    starts = multistart(problem, solver, n_starts=4, seed=41)
    assert min(s.objective for s in starts) > zero + 1.0
    best = hop(problem, solver, starts, seed=41)
    assert best.objective <= zero + 1e-5
    assert not np.any(best.parameters.weights)
    assert best.violation <= 1e-6


# --- training.hop ---------------------------------------------------------------------------


@dataclass
class Recorder:
    """A solver whose search records what it is given."""

    error: type | None = None
    count: int = 2
    given: list = field(default_factory=list)

    def hops(self, problem):
        return self.count

    def improve(self, problem, front, draws, budget):
        self.given.append((front, draws))
        if self.error is not None:
            raise self.error
        return front[0]


@pytest.fixture(scope="module")
def solutions():
    """Feasible solutions of different objectives; the problem comes first."""
    problem = make_problem(overall=0.2)
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
    best = hop(problem, solver, [four, broken, three, twin, two, failed, one])
    front, draws = solver.given[0]
    assert best is one
    assert [s.objective for s in front] == [one.objective, two.objective, three.objective]
    assert len(draws) == 7 * 2  # for each start there was


def test_draws_depend_on_the_seed_alone(solutions):
    problem, found = solutions
    child = np.random.SeedSequence(5).spawn(2)[1]
    draws = []
    for seed in (5, np.int64(5), np.random.SeedSequence(5), 6, child):
        solver = Recorder()
        hop(problem, solver, found, seed=seed)
        draws.append(solver.given[0][1])
    keys = [tuple(draw.seed for draw in one) for one in draws]
    assert keys[0] == keys[1] == keys[2]
    assert len({keys[0], keys[3], keys[4]}) == 3
    for one, two in zip(draws[0], draws[2], strict=True):
        np.testing.assert_array_equal(one.tree.weights, two.tree.weights)


def test_the_same_seed_gives_the_same_bits(solutions):
    problem, found = solutions
    ends = [hop(problem, NativeSolver(), found[2:], seed=3) for _ in range(2)]
    np.testing.assert_array_equal(ends[0].parameters.weights, ends[1].parameters.weights)
    np.testing.assert_array_equal(ends[0].parameters.thresholds, ends[1].parameters.thresholds)
    assert ends[0].objective == ends[1].objective


def test_no_usable_solution_is_one_clear_sentence(solutions):
    problem, found = solutions
    broken = [replace(s, status=Status.INFEASIBLE, violation=0.25) for s in found]
    with pytest.raises(
        NoFeasibleTreeError,
        match=r"none of 4 starts ended in a tree that meets the constraints \(smallest violation "
        r"0\.25; ends: INFEASIBLE .*\); lower min_class_rate, or raise depth or n_starts\.",
    ):
        hop(problem, NativeSolver(), broken)


def test_an_interrupted_search_returns_the_best_start(solutions):
    problem, found = solutions
    budget = Budget()
    assert hop(problem, Recorder(KeyboardInterrupt), found, budget=budget) is found[0]
    assert budget.cancel.requested


def test_no_search_without_time_or_by_a_solver_that_cannot(solutions):
    problem, found = solutions
    solver = Recorder()
    assert hop(problem, solver, found, budget=Budget(time_limit=0.0)) is found[0]
    assert not solver.given
    assert hop(problem, object(), found) is found[0]


def test_a_search_in_a_restricted_problem_moves_only_its_block():
    whole = make_problem(depth=3, rows=150, overall=0.1)
    anchor = solve(whole, rule="points").parameters
    part = whole.restrict(Block((2, 5, 6), (4, 5, 6, 7)), anchor)
    rough = TreeParameters(
        np.where(part.free_branches, 0.0, anchor.weights), anchor.thresholds, anchor.leaf_classes
    )
    first = solve(part, rule="points")
    assert first.status.usable
    found = hop(part, NativeSolver(), [first], seed=1)
    fixed = [0, 1, 3, 4]
    np.testing.assert_array_equal(found.parameters.weights[:, fixed], anchor.weights[:, fixed])
    np.testing.assert_array_equal(found.parameters.leaf_classes[:, :4], anchor.leaf_classes[:, :4])
    assert found.objective <= first.objective
    assert found.objective <= part.objective(part.best_leaves(rough)) + 1e-6
