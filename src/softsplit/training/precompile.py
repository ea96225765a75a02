"""Compile the code that trains trees before it is needed: what to compile, and when.

All compiled code is cut into sets of small calls (``SETS``), with arguments of the types that
training, reading and prediction use. After all calls no input compiles anything.

On a new installation the first fit compiles the sets that it needs. A second process compiles them
from the other end meanwhile; the cache on disk is where each finds what the other has compiled.
``softsplit compile`` compiles all sets at once.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from softsplit.engines.compiled import ThreadedRows
from softsplit.engines.hinged import HingedLines
from softsplit.engines.samples import Samples
from softsplit.fitted.row_pass import RowPlan
from softsplit.fitted.walk import FEW_CELLS, Walk
from softsplit.points.fits import fit_counts, fit_steps
from softsplit.points.likelihood import Gate, GateRows, derivatives, fit_gate
from softsplit.problem.penalties import counting
from softsplit.problem.problem import TrainingProblem
from softsplit.problem.size_limits import SizeLimits
from softsplit.problem.targets import Numbers
from softsplit.solvers import (
    BasinHoppingSolver,
    Budget,
    EliminationSolver,
    Solver,
    Start,
    make_solver,
)
from softsplit.solvers.active_set.state import EVALUATE_ONLY
from softsplit.solvers.basin_hopping.budget import IterationBudget
from softsplit.solvers.basin_hopping.run import DescentRun
from softsplit.solvers.elimination.descents import EngineFunction, RowDescents, group_shares
from softsplit.solvers.elimination.lbfgs import shorter
from softsplit.solvers.elimination.objective import Shrinkage
from softsplit.solvers.elimination.path import pruning_steps
from softsplit.solvers.elimination.race import grown, single_leaf
from softsplit.solvers.elimination.second_order import hessian, inverse_fisher
from softsplit.solvers.elimination.splicing import Splicing
from softsplit.solvers.elimination.support_tree import SupportTree
from softsplit.solvers.expected_deviance.descent import descend
from softsplit.solvers.expected_deviance.frame import Frame, NumberRows, canonical
from softsplit.solvers.expected_deviance.starts import with_leaves, working
from softsplit.solvers.starts.rules import draw_start
from softsplit.support import options, processes
from softsplit.support.bent_rows import AT_ONCE, exact_means
from softsplit.support.compiling import place_on_disk
from softsplit.support.messages import announce
from softsplit.training.multistart import multistart, search_around
from softsplit.training.tiny_problems import (
    TINY_PROBLEMS,
    tiny_likelihood,
    tiny_likelihoods,
    tiny_problem,
    tiny_problems,
)
from softsplit.tree.leaf_families import Squared
from softsplit.tree.parameters import TreeParameters
from softsplit.tree.routing import open_gates
from softsplit.tree.scaling import LinearScaling

EXPECTED = {"log": 15, "cost": 45, "numbers": 5}
"""Seconds for which two cores compile for each loss; the descent for the cost is one large call."""

# --- before a fit -----------------------------------------------------------------------------


def make_ready(
    solver: Solver,
    *,
    timed: bool,
    summed: type[np.floating[Any]] | None = None,
    smooth: bool = True,
) -> None:
    """Compile the code that ``solver`` needs; load it too if the run is ``timed``.

    ``summed`` is the precision of many rows, which are summed piece by piece, and ``smooth`` says
    whether penalties may have slopes: those that count need less code. Compiling takes many
    seconds on a new installation, and loading about one in a new process. Neither counts as
    training.
    """
    parts = solver.parts()
    for loss in {part.compiled_code for part in parts or (solver,)} - {None}:
        sums = () if summed is None or loss != "log" else (SETS_OF_SUMS[summed],)
        compile_sets(loss, *sums)
        if timed:
            load(loss, smooth)
            for name in sums:
                run_set(name)
    if timed and any(part.compiled_code for part in parts):
        load_blocks()


@cache
def load(loss: str, smooth: bool = True) -> None:
    """Run every code path of training on small trees, once in a process.

    Without ``smooth`` skip the code of penalties with slopes (l1), which takes seven seconds to
    compile on a new installation.
    """
    compile_sets(loss)
    load_order()
    problems = TINY_PROBLEMS[loss]()
    counting_ones = [problem for problem in problems if problem.penalties.counts]
    train_tiny(problems if smooth else counting_ones or problems)


@cache
def load_blocks() -> None:
    """Train small trees by decomposition."""
    train_tiny_blocks()


@cache
def load_order() -> None:
    """Put a few rows in canonical order."""
    for kind in (np.float64, np.float32):
        _order(kind)


# --- processes --------------------------------------------------------------------------------


@cache
def compile_sets(loss: str, *more: str) -> None:
    """Compile what trains by ``loss``, and ``more`` sets, once in a process."""
    place = place_on_disk(open_gates)
    if place is None or not missing((loss, *more), place):
        return
    announce(
        f"compiling numerical code for its first use here, once: about {EXPECTED[loss]} seconds."
    )
    compile_together((loss, *more))


def compile_everything() -> Path | None:
    """Compile all sets; return the folder, None if nothing can be kept."""
    place = place_on_disk(open_gates)
    if place is None:
        return None
    compile_together(tuple(SETS))
    return place[0]


def compile_for_commands() -> None:
    """Compile what ``softsplit fit`` and ``demo`` need.

    ``make demo`` runs it while packages that it does without are installed.
    """
    compile_together(("log", "commands"))


def compile_together(names: Sequence[str]) -> None:
    """Compile sets from the first call to the last, and another process from the last to the first.

    Both may be at the same call in the end: its functions are then compiled by whichever process
    comes to them first, and the other one loads them.
    """
    place, other = place_on_disk(open_gates), None
    names = missing(names, place)
    if names and processes.may_start_processes():
        code = f"from {__name__} import compile_here; compile_here({names!r}, -1)"
        other = processes.start_python(code)
    try:
        compile_here(names)
    finally:
        if other is not None:
            other.kill()
            other.wait()
    if place is not None:
        with suppress(OSError):  # where nothing can be written, it is done again
            for name in names:
                _mark_of(name, place).write_text(place[1], "utf-8")


def compile_here(names: Sequence[str], step: int = 1) -> None:
    """Make the calls of some sets; with ``step`` -1 from the last to the first.

    Without garbage collection: a compiler makes millions of objects that live long, and collection
    among them takes an eighth of the time.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        for call in [call for name in names for call in SETS[name]][::step]:
            call()
    finally:
        if enabled:
            gc.enable()


def run_set(name: str) -> None:
    """Make the calls of one set."""
    for call in SETS[name]:
        call()


def missing(names: Sequence[str], place: tuple[Path, str] | None) -> list[str]:
    """Return the sets without a file that names these versions, sources and processor."""

    def is_compiled(name: str) -> bool:
        if place is not None:
            with suppress(OSError, UnicodeDecodeError):
                return _mark_of(name, place).read_text("utf-8") == place[1]
        return False

    return [name for name in names if not is_compiled(name)]


def _mark_of(name: str, place: tuple[Path, str]) -> Path:
    return place[0] / f"softsplit-{name}.done"


# --- small calls ------------------------------------------------------------------------------


def train_tiny(problems: list[TrainingProblem]) -> None:
    """Train trees in every way in which larger ones are trained.

    A thousand iterations are enough for each kind of hop to be tried.
    """
    solver: Solver = EliminationSolver() if problems[0].log_loss else BasinHoppingSolver()
    for problem in problems:
        budget = Budget(max_iter=1000)
        ends = multistart(problem, solver, n_starts=len(solver.start_rules), budget=budget)
        best = search_around(problem, solver, ends, budget=budget)
        solver.solve(problem, Start(best.parameters), budget)


def train_tiny_blocks() -> None:
    """Train trees with solvers of options that call a native solver on parts of a problem."""
    solvers = map(make_solver, options.provided("solvers"))
    for solver in [solver for solver in solvers if solver.parts()]:
        for problem in tiny_problems():
            multistart(problem, solver, n_starts=1, budget=Budget(max_iter=3))


def _order(kind: type[np.floating[Any]]) -> None:
    Samples.from_arrays(np.zeros((2, 1), dtype=kind), np.array([0, 1]), 2)


def _descents() -> tuple[RowDescents, SupportTree]:
    """Return descents by likelihood on a few rows, and a tree of the right shape."""
    problem = tiny_likelihood(3, 2, counting())
    n_branches = problem.topology.n_branches
    leaves = np.repeat(group_shares(problem)[:, None], n_branches + 1, axis=1)
    weights = np.ones((problem.n_features, n_branches))
    tree = TreeParameters(weights, np.full(n_branches, 0.5), leaves)
    return RowDescents(problem, Budget(), problem.rows.sample()), SupportTree.of(tree, problem)


def _likelihood_descent() -> None:
    descents, support = _descents()
    descents.descend(support, Shrinkage(1.0, 1.0, 1.0), 1, 1.0)


def _evaluations() -> None:
    descents, support = _descents()
    shrinkage, problem = Shrinkage(1.0, 1.0, 1.0), descents.problem
    descents.function(support, shrinkage, support.free)(support.vector)
    problem.merit(support.parameters(problem))


def _fisher() -> None:
    descents, support = _descents()
    inverse_fisher(support.vector, descents.rows, 1.0, support.free, support.shape)
    hessian(support, descents.rows, 1.0)


def _prices() -> None:
    descents, support = _descents()
    pruning_steps(support, descents.rows, 1.0, 1)
    Splicing(descents, SizeLimits(features=1)).tree(support)


def _growth() -> None:
    descents, _ = _descents()
    draw_start("growth", descents.problem, np.random.default_rng(0), 1)
    grown(grown(single_leaf(descents.rows), descents.rows), descents.rows)


def _points() -> None:
    """Fit the gate and the points of a question on a few rows."""
    ones, sums = np.ones(4), np.arange(4.0)
    shares = np.eye(2)[np.arange(4) % 2]
    rows = GateRows(0.5 * np.ones((4, 2)), shares - 0.5, shares, ones)
    gate = fit_gate(rows, sums, Gate(0.0, 1.0, np.inf), 1.0, 1.0, 1)
    derivatives(rows, sums, gate)
    fit_steps(sums, ones, np.arange(4), 2, 1.0, 1, 0)
    fit_counts(np.arange(4)[None], sums, ones, 1, 0.0, 0.0, 0, 1)


def _likelihood() -> None:
    descents, support = _descents()
    EngineFunction(descents.problem, support).masses(support.vector)  # for class rates
    train_tiny(tiny_likelihoods())


def _numbers() -> None:
    """Descend on a few rows with numbers."""
    values = np.arange(4.0)
    rows, _ = canonical(NumberRows(values[:, None], Numbers.of(values)))
    problem = Frame.of(rows, Squared()).problem(rows)
    descend(problem, with_leaves(problem, working(problem), np.ones((1, 2))), 1)


def _cost_descent() -> None:
    problem = tiny_problem(2, 1)
    run = DescentRun(problem, IterationBudget(Budget(), 1))
    run.descend(np.zeros((1, problem.n_features + 1)), np.eye(2), EVALUATE_ONLY)


def _cost_starts() -> None:
    draw_start(BasinHoppingSolver().start_rules[0], tiny_problem(2, 1), np.random.default_rng(0))


def _predictions() -> None:
    """Predict so many rows that compiled code is used."""
    plan = RowPlan.of(
        TreeParameters(np.ones((1, 1)), np.zeros(1), np.eye(2)), 1.0,
        LinearScaling(np.zeros(1), np.ones(1)),
    )  # fmt: skip
    for kind in (np.float64, np.float32):
        plan.class_proba(np.zeros((200_000, 1), dtype=kind), np.eye(2))
    _walks()


def _walks() -> None:
    """Walk with so many rows that compiled code is used."""
    none, n_columns = np.zeros(1), FEW_CELLS // AT_ONCE + 1
    asked, units = np.ones((1, n_columns)), LinearScaling(np.zeros(n_columns), np.ones(n_columns))
    walk = Walk(asked, none, none == 0, none == 1, np.zeros((2, 2)), np.arange(2))
    walk.leaves(np.zeros((AT_ONCE, n_columns)), units)


def _row_sums(kind: type[np.floating[Any]]) -> ThreadedRows:
    """Sum a few rows as many are summed, by likelihood."""
    descents, support = _descents()
    samples = descents.problem.rows.sample()
    rows = ThreadedRows(replace(samples, features=samples.features.astype(kind)))
    function = EngineFunction(replace(descents.problem, rows=rows), support)
    function.smooth(Shrinkage(1.0, 1.0, 1.0), support.free)(support.vector)
    shorter(1.0, 1.0, -1.0)
    ones, table = np.ones(1), np.zeros((1, 1), dtype=kind)
    exact_means(table, (ones, ones), ones, ones, 1.0, 1.0, squared=False)
    HingedLines(table, np.zeros(1, dtype=np.intp), ones, ones, ones)[0]
    _walks()
    return rows


def _many_rows(kind: type[np.floating[Any]]) -> None:
    train_tiny([replace(tiny_problem(3, 2), rows=_row_sums(kind))])


SETS: dict[str, tuple[Callable[[], Any], ...]] = {
    "log": (
        partial(_order, np.float64), _likelihood_descent, _evaluations, _prices, _fisher, _growth,
        _points,
    ),
    "row-sums": (partial(_row_sums, np.float64),),
    "single-row-sums": (partial(_row_sums, np.float32),),
    "commands": (partial(_order, np.float32),),
    "others": (
        _likelihood, _predictions, partial(_many_rows, np.float64), partial(_many_rows, np.float32),
        train_tiny_blocks, lambda: train_tiny(tiny_problems()),
    ),
    "cost": (partial(_order, np.float64), _cost_descent, _cost_starts),
    "numbers": (_numbers,),
}  # fmt: skip
"""Calls by what needs them; most compile for a second or a few. Two processes begin at the ends
of a set, where the longest calls are; calls that need the same functions are neighbours."""

SETS_OF_SUMS: dict[type[np.floating[Any]], str] = {
    np.float64: "row-sums",
    np.float32: "single-row-sums",
}
"""What many rows need beside the set of the log-loss, by their precision."""
