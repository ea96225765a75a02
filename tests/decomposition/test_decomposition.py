"""Node decomposition: what its rules cover, and what a run promises whatever the inner solver."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from helpers import random_case, random_costs, sensitive_case
from native_cases import make_problem
from slow_cases import examples, slow
from softsplit.decomposition import (
    Alternating,
    Block,
    EvaluationSet,
    History,
    LargestViolation,
    MacroIterations,
    NodeDecomposition,
    ProcessorTime,
    Residual,
    SingleBranches,
    Subtrees,
    TraceRow,
    ValidationAccuracy,
    View,
)
from softsplit.decomposition.trace import training_accuracy
from softsplit.problem.loss import ExpectedCost
from softsplit.problem.optimality import branch_stationarity, kkt
from softsplit.problem.penalties import PenaltyPair, exponential
from softsplit.problem.problem import Proximal
from softsplit.solvers import BasinHoppingSolver, Budget, Solution, Solver, Start, Status
from softsplit.solvers.starts.rules import draw_start
from softsplit.tree.parameters import TreeParameters

RULES = [SingleBranches(), Alternating(), Subtrees(), Subtrees(1), LargestViolation()]
every_rule = pytest.mark.parametrize("rule", RULES, ids=repr)


def a_start(problem, seed=0, rule="groups", candidates=0):
    return replace(draw_start(rule, problem, np.random.default_rng(seed), candidates), seed=seed)


def run(problem, seed=0, budget=None, start=None, **parameters):
    solver = NodeDecomposition(**parameters)
    return solver.solve(problem, start or a_start(problem, seed), budget or Budget())


def objectives(solution):
    return np.array([row.objective for row in solution.trace.rows])


def view(depth=3, seed=0, stuck=False):
    case = random_case(seed, depth)
    return View(case.problem, case.tree, np.random.default_rng(seed), stuck)


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize(
    "rule", [SingleBranches(), Subtrees(1), Subtrees(2), Subtrees(3), LargestViolation(0.0)]
)
def test_every_branch_once_with_all_leaves(rule, depth):
    blocks = rule.blocks(view(depth))
    assert sorted(t for b in blocks for t in b.branches) == list(range(2**depth - 1))
    assert all(b.leaves == tuple(range(2**depth)) for b in blocks)


@pytest.mark.parametrize("partition", [((0,), (1,)), ((0, 1), (1, 2)), ((0, 1, 2, 3),)])
def test_a_partition_names_every_branch_once(partition):
    with pytest.raises(ValueError, match="every branch from 0 to 2 once"):
        Alternating(partition).blocks(view(2))


def test_subtrees_are_subtrees_and_the_lowest_come_first():
    look = view(3)
    drawn = {tuple(tuple(sorted(b.branches)) for b in Subtrees(2).blocks(look)) for _ in range(20)}
    assert drawn == {((2, 5, 6), (1, 3, 4), (0,)), ((6,), (5,), (4,), (3,), (0, 1, 2))}


def test_the_largest_violation_comes_first_and_small_ones_not_at_all():
    look = view()
    residuals = branch_stationarity(look.problem, look.tree)
    order = [b.branches[0] for b in LargestViolation(0.5).blocks(look)]
    assert_array_equal(order, np.argsort(-residuals)[: len(order)])
    assert residuals[order].min() >= 0.5 * residuals.max()
    assert len(order) == np.sum(residuals >= 0.5 * residuals.max()) < 7
    stuck = LargestViolation(0.5).blocks(view(stuck=True))
    assert sorted(b.branches[0] for b in stuck) == list(range(7))


@dataclass(frozen=True)
class Careless(Solver):
    """Returns random trees on the block, feasible or not, better or not."""

    name: str = "careless"
    start_rules: tuple = ("points",)
    candidates: int = 0
    releases_gil: bool = True
    zero_threshold: float = 0.0

    def solve(self, problem, start, budget):
        rng = np.random.default_rng(len(problem.block.branches))
        tree = start.parameters
        shaken = TreeParameters(
            tree.weights + rng.normal(0, 0.3, tree.weights.shape),
            tree.thresholds + rng.normal(0, 0.05, tree.thresholds.shape),
            rng.dirichlet(np.ones(tree.n_groups), tree.leaf_values.shape[1]).T,
        )
        return measured(problem, shaken)


def measured(problem, tree, **more):
    """A solution at this tree, from a solver called careless."""
    return Solution.measure(
        problem, tree, Status.ACCEPTABLE, tol=1e-6, n_iter=1, seconds=0.0, solver="careless", **more
    )


@pytest.mark.slow
@examples(15)
@given(
    seed=st.integers(0, 10**6),
    depth=st.integers(1, 3),
    rule=st.sampled_from(RULES),
    proximal=st.sampled_from([0.0, 1e-3, 10.0]),
    inner=st.sampled_from(["native", Careless()]),
    rates=st.sampled_from([0.0, 0.1, 0.3]),
)
def test_the_objective_never_rises_and_the_tree_stays_feasible(
    seed, depth, rule, proximal, inner, rates
):
    case = random_case(seed, depth, 20.0, rates=rates, n_rows=40)
    found = run(
        case.problem,
        seed,
        start=a_start(case.problem, seed, "points"),
        working_sets=rule,
        proximal=proximal,
        inner=inner,
        macro_iterations=3,
    )
    feasible = [row.violation <= 1e-6 for row in found.trace.rows]
    assert feasible == sorted(feasible)
    after = objectives(found)[feasible]
    assert np.all(np.diff(after) <= 1e-10)
    assert found.objective == pytest.approx(case.problem.objective(found.parameters))
    if feasible[-1]:
        assert case.problem.violation(found.parameters).largest <= 1e-6
        assert found.objective == pytest.approx(after[-1])


def test_the_trace_has_a_row_for_the_start_and_for_every_macro_iteration():
    problem = make_problem(depth=2, global_=0.5)
    found = run(problem, macro_iterations=3)
    frame = found.trace.to_frame()
    assert_array_equal(frame["macro_iteration"], np.arange(len(frame)))
    assert len(found.trace) == len(frame) <= 4 and not found.trace.initialised
    assert np.all(np.diff(frame["cpu_seconds"]) >= 0) and np.all(np.diff(frame["n_iter"]) >= 0)
    assert found.n_iter == frame["n_iter"].iloc[-1]
    last = found.trace[len(frame) - 1]
    assert last.objective == pytest.approx(found.objective)
    assert last.train_accuracy == training_accuracy(found.parameters, problem.samples, 512.0)
    assert np.isnan(last.test_accuracy)
    assert frame["steps"].tolist() == [0, *[3] * (len(frame) - 1)]


@dataclass(frozen=True)
class OnTheWhole(Careless):
    """Returns a given tree for the whole problem, and on a block what it was given."""

    answer: TreeParameters | None = None

    def solve(self, problem, start, budget):
        return measured(problem, self.answer if problem.block is None else start.parameters)


def test_an_infeasible_start_is_mended_on_the_whole_problem():
    """No leaves are feasible where all rows take the same way, and no block moves here."""
    problem = make_problem(depth=2, rate=0.5, global_=0.2)
    feasible = BasinHoppingSolver().solve(problem, a_start(problem), Budget()).parameters
    neutral = TreeParameters.neutral(4, 3, problem.topology)
    assert problem.violation(neutral).largest > 0.1
    found = run(problem, start=Start(neutral), inner=OnTheWhole(answer=feasible))
    assert found.status.usable and found.trace[0].violation <= 1e-6
    assert_array_equal(found.parameters.weights, feasible.weights)


def history(**last):
    row = dict.fromkeys(TraceRow.__dataclass_fields__, 0) | last
    case = sensitive_case(0, 2, 5.0)
    return History(case.problem, [TraceRow(**row)], [case.tree])


@pytest.mark.parametrize(
    "make, sentence",
    [
        (lambda: Subtrees(0), "height must be a positive integer"),
        (lambda: LargestViolation(2.0), r"share must lie in \[0, 1\]"),
        (lambda: Proximal(np.nan, random_case(0, 1).tree), "proximal must be a finite number >= 0"),
        (lambda: MacroIterations(0), "count of MacroIterations must be a positive integer, got 0"),
        (lambda: ProcessorTime(-1), "cpu_seconds of ProcessorTime must be a finite number > 0"),
        (lambda: Residual(np.nan), "tol of Residual must be a finite number > 0, got nan"),
        (lambda: ValidationAccuracy(3), r"must be an EvaluationSet\(X, y\), got 3"),
        (
            lambda: ValidationAccuracy(EvaluationSet([[0.0]], [0]), patience=0),
            "patience of ValidationAccuracy must be a positive integer, got 0",
        ),
    ],
)
def test_rules_refuse_nonsense(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


def test_the_residual_rule_looks_at_the_whole_problem():
    look = history()
    residual = kkt(look.problem, look.trees[-1]).residual / look.problem.cost_unit
    assert Residual(1.01 * residual).reached(look) and not Residual(0.99 * residual).reached(look)


def test_early_stopping_returns_the_tree_that_validated_best():
    problem = make_problem(depth=3, rows=150, global_=0.1)
    other = make_problem(seed=0, depth=3, rows=400, global_=0.1).samples
    rows = EvaluationSet(other.features.T, other.labels)
    rule = ValidationAccuracy(rows, patience=2)
    found = run(problem, stopping=(rule,), watch=rows, macro_iterations=30)
    seen = [row.test_accuracy for row in found.trace.rows]
    best = int(np.argmax(seen))
    assert rows.accuracy(found.parameters, 512.0) == max(seen)
    assert len(seen) - 1 - best == 2 or len(seen) == 31 or found.trace.rows[-1].accepted == 0


@dataclass(frozen=True)
class Counted(BasinHoppingSolver):
    """Counts its calls; after some of them something happens."""

    calls: dict = field(default_factory=dict)
    seen: list = field(default_factory=list)

    @property
    def made(self):
        return len(self.seen)

    def solve(self, problem, start, budget):
        found = super().solve(problem, start, budget)
        self.seen.append(found)
        self.calls.get(self.made, lambda: None)()
        return found


def test_a_time_limit_returns_the_best_so_far(clock):
    problem = make_problem(depth=4, rows=300, features=10, global_=0.1)
    inner, budget = Counted(), Budget(time_limit=1.0)
    inner.calls[5] = lambda: clock.advance(2.0)
    found = run(problem, budget=budget, inner=inner, macro_iterations=1000)
    assert found.status is Status.TIME_LIMIT and inner.made == 5
    assert found.objective < objectives(found)[0]
    assert found.violation <= 1e-6


@dataclass(frozen=True)
class Interrupted(Careless):
    def solve(self, problem, start, budget):
        raise KeyboardInterrupt


def test_an_interrupt_in_a_step_returns_the_best_so_far():
    budget = Budget()
    problem = make_problem(depth=2, global_=0.1)
    found = run(problem, budget=budget, inner=Interrupted())
    assert found.status is Status.INTERRUPTED and budget.stopped
    assert found.objective == pytest.approx(objectives(found)[0])


@every_rule
def test_cost_matrix_and_rates_hold_in_the_end(rule):
    rng = np.random.default_rng(0)
    problem = replace(
        make_problem(depth=2, rows=150, global_=0.3),
        loss=ExpectedCost(random_costs(rng, 3)),
        minimum_rates=np.array([0.5, 0.4, 0.6]),
    )
    found = run(problem, working_sets=rule, macro_iterations=6)
    assert found.status.usable
    assert np.all(problem.rates(found.parameters) >= problem.minimum_rates - 1e-6)
    assert found.objective <= objectives(found)[0]


@dataclass(frozen=True)
class Listed:
    """A rule that lists what it was given."""

    given: list

    def blocks(self, view):
        return self.given


@pytest.mark.parametrize(
    "parameters, sentence",
    [
        ({"inner": "simplex"}, "solver 'simplex' is unknown"),
        ({"macro_iterations": 0}, "macro_iterations must be a positive integer"),
        ({"inner_iter": 2.5}, "inner_iter must be a positive integer"),
        ({"proximal": -1}, "proximal must be a finite number >= 0"),
        ({"proximal": "small"}, "proximal must be a finite number >= 0"),
        ({"working_sets": SingleBranches}, "working_sets must be a rule"),
        ({"stopping": [MacroIterations]}, "stopping must hold rules"),
        ({"initialisation": "random"}, "initialisation must be a number of iterations"),
        ({"initialisation": True}, "initialisation must be a number of iterations.*got True"),
        ({"watch": np.zeros((3, 4))}, r"watch must be an EvaluationSet\(X, y\)"),
        ({"watch": EvaluationSet(np.zeros((3, 5)), [0, 1, 2])}, r"rows of 4 features.*\(3, 5\)"),
        ({"watch": EvaluationSet(np.zeros(4), [0])}, r"rows of 4 features.*\(4,\)"),
        ({"watch": EvaluationSet(np.zeros((3, 4)), [0, 1])}, r"each of its 3 rows.*\(2,\)"),
        ({"watch": EvaluationSet([["a"] * 4], [0])}, "must be an array of numbers"),
        ({"watch": EvaluationSet(np.full((1, 4), np.nan), [0])}, "holds NaN or infinity"),
        ({"watch": EvaluationSet(np.zeros((1, 4)), ["a"])}, "must hold class indices"),
        (
            {"stopping": (ValidationAccuracy(EvaluationSet(np.zeros((3, 5)), [0, 1, 2])),)},
            r"rows of 4 features.*\(3, 5\)",
        ),
        ({"working_sets": Listed([Block((9,), ())])}, "branches 0 to 2 and leaves 0 to 3.*9"),
        ({"working_sets": Listed([(0, 1)])}, "branches 0 to 2 and leaves 0 to 3"),
        ({"working_sets": "all"}, r"working_sets must be a rule such as SingleBranches\(\)"),
        ({"stopping": MacroIterations(2)}, "stopping must be a sequence of rules"),
    ],
)
def test_nonsense_is_refused_in_a_sentence(parameters, sentence):
    problem = make_problem()
    with pytest.raises(ValueError, match=sentence):
        run(problem, **parameters)


@pytest.mark.parametrize("proximal", [1e-3, *slow(0.0)])
def test_ipopt_inside(proximal):
    pytest.importorskip("casadi", reason="needs softsplit[ipopt]")
    problem = make_problem(depth=2, rows=60, global_=0.3)
    found = run(
        problem,
        inner="ipopt",
        start=a_start(problem, rule="points"),
        proximal=proximal,
        initialisation=5,
        macro_iterations=2,
    )
    levels = objectives(found)
    assert found.status.usable and np.all(np.diff(levels) <= 1e-9)
    assert levels[-1] < levels[0]
    assert NodeDecomposition(inner="ipopt").zero_threshold == 1e-4


@pytest.mark.parametrize("local", [0.0, 0.4], ids=["one part", "split weights"])
def test_the_proximal_term_of_the_nonlinear_programs(local):
    """Value, gradient and Hessian against the term itself, over all variables of the block."""
    pytest.importorskip("casadi", reason="needs softsplit[ipopt]")
    from softsplit.ipopt.program import SubstitutedProgram

    penalties = PenaltyPair.of(exponential(), local, 0.3)
    case = sensitive_case(0, 3, 5.0, penalties, n_rows=12)
    block = Block((0, 4), tuple(range(8)))
    with_term, without = (
        SubstitutedProgram(case.problem.restrict(block, case.tree, proximal=psi))
        for psi in (0.7, 0.0)
    )
    rng = np.random.default_rng(0)
    x = with_term.start(case.tree)
    x = np.clip(x + rng.uniform(-0.1, 0.1, x.shape), with_term.lower, with_term.upper)
    term = case.problem.restrict(block, case.tree, proximal=0.7).proximal

    def value(point):
        return term.value(with_term.tree(point))

    assert with_term.objective(x) - without.objective(x) == pytest.approx(value(x))
    slope = with_term.gradient(x) - without.gradient(x)
    units, step = np.eye(len(x)), 1e-5
    numeric = [(value(x + step * u) - value(x - step * u)) / (2 * step) for u in units]
    assert_allclose(slope, numeric, atol=1e-8)
    none = np.zeros(len(with_term.constraint_lower))
    dense = _dense(with_term, x, none) - _dense(without, x, none)
    curved = [
        (with_term.gradient(x + step * u) - without.gradient(x + step * u) - slope) / step
        for u in units
    ]
    assert_allclose(dense, curved, atol=1e-6)


def _dense(program, x, multipliers):
    pattern = program.hessian_pattern
    values = pattern.gather(program.hessian(x, 1.0, multipliers))
    upper = np.zeros(pattern.shape)
    columns = np.repeat(np.arange(pattern.shape[1]), np.diff(pattern.column_starts))
    upper[pattern.row_indices, columns] = values
    return upper + np.triu(upper, 1).T
