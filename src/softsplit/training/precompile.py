"""Compile the code that trains trees before it is needed: what to compile, and in which process.

All compiled code is cut into units (``UNITS``): calls with small arguments of the types that
training, reading and prediction use. After all units no input compiles anything.

On a new installation the units that a fit needs are compiled by this process and a second one,
which take them from both ends of a list; the cache on disk is where each finds the code of the
other. The other units (the other loss, blocks, single precision, many rows) are left to a process
of low priority that nobody waits for. It may outlast this process, since a command ends within
seconds and the next one should find its code. ``softsplit compile`` compiles all units at once.

If a process cannot be started, fails or hangs, this one compiles what it needs.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from threading import Lock, Timer
from typing import IO, Any

import numpy as np

from softsplit.engines.compiled import CompiledRows, ThreadedRows
from softsplit.engines.samples import Samples
from softsplit.fitted.importance import add_spreads
from softsplit.fitted.row_pass import RowPlan
from softsplit.problem.bounds import Bounds
from softsplit.problem.loss import ExpectedCost, LogLoss
from softsplit.problem.penalties import PenaltyPair, Surrogate, counting, exponential
from softsplit.problem.problem import TrainingProblem
from softsplit.problem.size_limits import SizeLimits
from softsplit.solvers import (
    BasinHoppingSolver,
    Budget,
    EliminationSolver,
    Solver,
    Start,
    make_solver,
)
from softsplit.solvers.active_set.descent import EVALUATE_ONLY
from softsplit.solvers.basin_hopping.run import DescentRun, IterationBudget
from softsplit.solvers.elimination.descents import EngineFunction, RowDescents, class_shares
from softsplit.solvers.elimination.lbfgs import shorter
from softsplit.solvers.elimination.objective import Shrinkage
from softsplit.solvers.elimination.path import pruning_steps
from softsplit.solvers.elimination.race import grown, single_leaf
from softsplit.solvers.elimination.second_order import hessian, inverse_fisher
from softsplit.solvers.elimination.splicing import Splicing
from softsplit.solvers.elimination.support_tree import SupportTree
from softsplit.solvers.starts.rules import draw_start
from softsplit.support import options, processes
from softsplit.support.compiling import notice, place_on_disk
from softsplit.support.interruption import never_lost
from softsplit.training.multistart import multistart, search_around
from softsplit.tree.parameters import Topology, TreeParameters
from softsplit.tree.routing import open_gates
from softsplit.tree.scaling import LinearScaling

SWITCH = "SOFTSPLIT_COMPILE_AHEAD"
"""An environment variable; with 0, no process compiles what is not needed yet."""


@dataclass(frozen=True)
class PrecompileOptions:
    """Durations in seconds.

    Attributes
    ----------
    expected : dict
        How long two processes on two cores compile for each loss, as the user is told. The descent
        for the cost is one large unit.
    expected_more : int
        The same for each further unit that many rows need.
    patience : float
        How long to wait for another process when all else is done.
    longest : float
        When the process that nobody waits for gives up.
    poll : float
        Time between two looks at the locks of other processes.
    """

    expected: Mapping[str, int]
    expected_more: int = 5
    patience: float = 120.0
    longest: float = 600.0
    poll: float = 0.05


OPTIONS = PrecompileOptions(expected={"log": 15, "cost": 45})


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
    needed = {part.compiled_code for part in parts or (solver,)}
    for code in (code for code in needed if code is not None):
        more = () if summed is None or code != "log" else (UNITS_OF_SUMS[summed],)
        compile_together(code, *more)
        if timed:
            warm_up(code, smooth)
            for name in more:
                UNITS[name]()
    if timed and any(part.compiled_code for part in parts):
        warm_up_blocks()


@cache
def warm_up(loss: str, smooth: bool = True) -> None:
    """Run every code path of training on small trees, once in a process.

    Without ``smooth`` skip the code of penalties with slopes (l1), which takes seven seconds to
    compile on a new installation.
    """
    compile_together(loss)
    warm_up_samples()
    UNITS["importances"]()
    problems = TINY_PROBLEMS[loss]()
    train_tiny([one for one in problems if smooth or one.penalties.counts] or problems)


@cache
def warm_up_blocks() -> None:
    """Train small trees by decomposition."""
    train_tiny_blocks()


@cache
def warm_up_samples() -> None:
    """Put a few rows in canonical order."""
    for name in ("order", "single-order"):
        UNITS[name]()


# --- processes --------------------------------------------------------------------------------

_one_at_a_time = Lock()
_done: set[str] = set()


def compile_together(loss: str, *more: str) -> None:
    """Compile what trains by ``loss`` in two processes, unless that was done before.

    ``more`` are further units.
    """
    with _one_at_a_time:
        if not {loss, *more} <= _done:
            jobs = _shared_jobs()
            if jobs is not None and processes.may_start_processes():
                units = (*UNITS_OF_LOSS[loss], *more)
                left = [name for name in units if not jobs.is_done(name)]
                if left:
                    of_loss = 0 if set(left) <= set(more) else OPTIONS.expected[loss]
                    seconds = of_loss + OPTIONS.expected_more * len(set(left) & set(more))
                    notice.tell(f", once: {told_duration(seconds)}")
                    _compile(jobs, units)
                _start_the_rest(jobs)
            _done.update({loss, *more})


def told_duration(expected: int, load: float | None = None) -> str:
    """How long two processes compile beside the other processes that want the cores.

    ``load`` is their mean number, as the system tells it if it is not given.
    """
    if load is None:
        load = 0.0
        with suppress(AttributeError, OSError):
            load = os.getloadavg()[0]
    crowd = max(1.0, (load + 2) / max(processes.n_cores(), 2))
    about = 5 * round(expected * crowd / 5)
    return f"about {about} seconds" + (" on this busy machine" if crowd >= 1.5 else "")


def compile_everything() -> Path | None:
    """Compile all units in two processes; return the folder, None if nothing can be kept."""
    jobs = _shared_jobs()
    if jobs is None:
        return None
    _compile(jobs, tuple(UNITS))
    return jobs.folder


def help_compile(names: Iterable[str], *, backwards: bool) -> None:
    """Run one of the two processes: compile units from one end of the list."""
    jobs = _shared_jobs()
    if jobs is not None:
        with _no_collection():
            jobs.run(_calls(names), backwards=backwards)


def compile_for_commands(*, backwards: bool) -> None:
    """Compile what ``softsplit fit`` and ``demo`` need, from one end of the list.

    ``make demo`` runs it twice while packages that it does without are installed.
    """
    help_compile((*UNITS_OF_LOSS["log"], "single-order", "importances"), backwards=backwards)


def compile_the_rest() -> None:
    """Run the process that nobody waits for.

    A unit that cannot be compiled counts as done: whoever needs it will meet the error.
    """
    with suppress(AttributeError, OSError):
        os.nice(19)
    end = Timer(OPTIONS.longest, os._exit, (1,))
    end.daemon = True
    end.start()
    jobs = _shared_jobs()
    if jobs is None:
        return
    with jobs.lock("the-rest") as free:
        if free:  # with garbage collection: this process should hold little memory
            jobs.run({name: _without_errors(UNITS[name]) for name in UNITS})


def _shared_jobs() -> SharedJobs | None:
    place = place_on_disk(open_gates)
    return None if place is None else SharedJobs(*place)


def _compile(jobs: SharedJobs, names: tuple[str, ...]) -> None:
    """Compile in two other processes: here Ctrl-C would wait for the compiler, for seconds."""
    others = []
    with never_lost(), _no_collection():
        try:
            for backwards in (False, True) if processes.may_start_processes() else ():
                call = f"help_compile({names!r}, backwards={backwards})"
                other = processes.start_python(f"from {__name__} import help_compile; {call}")
                others += [] if other is None else [other]
            while any(other.poll() is None for other in others):
                time.sleep(OPTIONS.poll)
            jobs.run(_calls(names))  # what they have left
        finally:
            for other in others:
                other.kill()
                other.wait()


DETACH = "import subprocess, sys; subprocess.Popen(sys.argv[1:], start_new_session=True)"
"""Code of a process that starts another one and ends, so that the other one has no parent."""


def _start_the_rest(jobs: SharedJobs) -> None:
    if os.environ.get(SWITCH) == "0" or all(map(jobs.is_done, UNITS)):
        return
    with jobs.lock("the-rest") as free:
        pass
    if free:
        code = f"from {__name__} import compile_the_rest; compile_the_rest()"
        starter = processes.start_python(code, "-I", "-S", "-c", DETACH, sys.executable)
        if starter is not None:
            starter.wait()


def _calls(names: Iterable[str]) -> dict[str, Callable[[], Any]]:
    return {name: UNITS[name] for name in names}


def _without_errors(call: Callable[[], Any]) -> Callable[[], Any]:
    def tried() -> None:
        with suppress(Exception):
            call()

    return tried


@contextmanager
def _no_collection() -> Iterator[None]:
    """Switch garbage collection off: a compiler makes millions of objects that live long, and
    collection among them takes an eighth of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@dataclass(frozen=True)
class SharedJobs:
    """Jobs that are done once on a machine, by whichever process locks them first.

    A job is done when its file in ``folder`` holds ``key``: the versions and the processor that it
    was done for. The lock on another file is released by the system when a process ends, however
    it ends.
    """

    folder: Path
    key: str

    def is_done(self, job: str) -> bool:
        with suppress(OSError, UnicodeDecodeError):
            return self._file(job, "done").read_text("utf-8") == self.key
        return False

    def mark_done(self, job: str) -> None:
        """Note that a job is done; where nothing can be written it will be done again."""
        with suppress(OSError):
            self._file(job, "done").write_text(self.key, "utf-8")

    @contextmanager
    def lock(self, job: str) -> Iterator[bool]:
        """Yield whether no other process has the job; within the block no other will have it.

        Where files cannot be locked, always True.
        """
        try:
            file = self._file(job, "lock").open("a")
        except OSError:
            yield True
            return
        with file:
            yield _lock(file)

    def run(
        self,
        calls: Mapping[str, Callable[[], Any]],
        patience: float = OPTIONS.patience,
        *,
        backwards: bool = False,
    ) -> None:
        """Do all jobs; wait ``patience`` seconds for those that other processes have.

        Two processes that begin at different ends meet late.
        """
        left, waited = list(calls)[:: -1 if backwards else 1], 0.0
        while left := [name for name in left if not self._try(name, calls[name])]:
            if waited > patience:
                return
            time.sleep(OPTIONS.poll)
            waited += OPTIONS.poll

    def _try(self, job: str, call: Callable[[], Any]) -> bool:
        """Return whether a job is done, after doing it if no other process has it."""
        if self.is_done(job):
            return True
        with self.lock(job) as mine:
            if mine and not self.is_done(job):
                call()
                self.mark_done(job)
            return mine

    def _file(self, job: str, ending: str) -> Path:
        return self.folder / f"softsplit-{job}.{ending}"


def _lock(file: IO[str]) -> bool:
    try:
        import fcntl
    except ImportError:  # Windows
        return _lock_on_windows(file)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


def _lock_on_windows(file: IO[str]) -> bool:
    import msvcrt

    try:
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    except OSError:
        return False
    return True


# --- units ------------------------------------------------------------------------------------


def tiny_problems() -> list[TrainingProblem]:
    """Return problems by cost: one split between two classes, and three between three."""
    return [tiny_problem(2, 1), tiny_problem(3, 2)]


def tiny_problem(n_classes: int, depth: int) -> TrainingProblem:
    """Return a problem by cost with two features, both penalties, and class rates."""
    return TrainingProblem(
        tiny_rows(n_classes),
        Topology(depth),
        ExpectedCost.uniform(n_classes),
        PenaltyPair.of(exponential(), 0.1, 0.1),
        np.full(n_classes, 0.1),
    )


def tiny_likelihoods() -> list[TrainingProblem]:
    """Return the same by likelihood, one with a smooth penalty and one that counts."""
    return [tiny_likelihood(2, 1, exponential()), tiny_likelihood(3, 2, counting())]


TINY_PROBLEMS = {"log": tiny_likelihoods, "cost": tiny_problems}
"""Small problems by the compiled code that they need."""


def tiny_likelihood(n_classes: int, depth: int, surrogate: Surrogate) -> TrainingProblem:
    """Return a problem by likelihood with two features, both penalties and a ridge."""
    rows = tiny_rows(n_classes)
    return TrainingProblem(
        rows,
        Topology(depth),
        LogLoss.counted(rows.class_totals),
        PenaltyPair.of(surrogate, 0.1, 0.1),
        np.zeros(n_classes),
        steepness=6.0,
        bounds=Bounds.free(2, Topology(depth).n_branches),
        ridge=1.0,
    )


def tiny_rows(n_classes: int, n_rows: int = 30) -> CompiledRows:
    """Return rows of two features, as many of each class."""
    rng = np.random.default_rng(0)
    labels = np.arange(n_rows) % n_classes
    X = rng.uniform(size=(n_rows, 2)) + labels[:, None]
    return CompiledRows(Samples.from_arrays(X, labels, n_classes))


def train_tiny(problems: list[TrainingProblem]) -> None:
    """Train trees in every way in which larger ones are trained.

    A thousand iterations are enough for each kind of hop to be tried.
    """
    solver: Solver = EliminationSolver() if problems[0].log_loss else BasinHoppingSolver()
    for problem in problems:
        budget = Budget(max_iter=1000)
        found = multistart(problem, solver, n_starts=len(solver.start_rules), budget=budget)
        best = search_around(problem, solver, found, budget=budget)
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
    leaves = np.repeat(class_shares(problem)[:, None], n_branches + 1, axis=1)
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


def _likelihood() -> None:
    descents, support = _descents()
    descents.masses(support).at(support.vector)  # for class rates
    train_tiny(tiny_likelihoods())


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


def _importances() -> None:
    one = np.zeros((1, 1))
    add_spreads(one, one, one, np.zeros((1, 2), dtype=np.intp), one)  # of large trees


def _row_sums(kind: type[np.floating[Any]]) -> ThreadedRows:
    """Sum a few rows as many are summed, by likelihood."""
    descents, support = _descents()
    samples = descents.problem.rows.sample()
    rows = ThreadedRows(replace(samples, features=samples.features.astype(kind)))
    function = EngineFunction(replace(descents.problem, rows=rows), support)
    function.smooth(Shrinkage(1.0, 1.0, 1.0), support.free)(support.vector)
    shorter(1.0, 1.0, -1.0)
    return rows


def _many_rows(kind: type[np.floating[Any]]) -> None:
    train_tiny([replace(tiny_problem(3, 2), rows=_row_sums(kind))])


UNITS: dict[str, Callable[[], Any]] = {
    "order": partial(_order, np.float64),
    "likelihood-descent": _likelihood_descent,
    "evaluations": _evaluations,
    "fisher": _fisher,
    "prices": _prices,
    "growth": _growth,
    "likelihood": _likelihood,
    "predictions": _predictions,
    "single-order": partial(_order, np.float32),
    "importances": _importances,
    "row-sums": partial(_row_sums, np.float64),
    "single-row-sums": partial(_row_sums, np.float32),
    "many-rows": partial(_many_rows, np.float64),
    "single-rows": partial(_many_rows, np.float32),
    "blocks": train_tiny_blocks,
    "cost": lambda: train_tiny(tiny_problems()),
    "cost-starts": _cost_starts,
    "cost-descent": _cost_descent,
}
"""Calls by name, those first that are needed first; most compile for a second or a few.

Units by cost are in the opposite order: they call the descent, and of two processes one begins with
it, at the end, so that neither compiles what the other compiles.
"""

UNITS_OF_LOSS = {
    "log": ("order", "likelihood-descent", "evaluations", "prices", "fisher", "growth"),
    "cost": ("order", "cost-descent", "cost-starts"),
}
"""Units that train by a loss. Two processes begin at the ends, where the longest units are; units
that call the same functions are neighbours."""

UNITS_OF_SUMS: dict[type[np.floating[Any]], str] = {
    np.float64: "row-sums",
    np.float32: "single-row-sums",
}
"""What many rows need beside the units of the log-loss, by their precision."""
