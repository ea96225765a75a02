"""What every solver takes and returns, and the base class of solvers."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import islice
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from softsplit.problem.optimality import KKT, kkt
from softsplit.problem.problem import TrainingProblem
from softsplit.solvers.stopping import EndPoints, SearchSummary
from softsplit.support.arrays import FloatArray
from softsplit.support.interruption import is_interruption, raise_again, seen
from softsplit.support.parallel import in_threads
from softsplit.tree.parameters import TreeParameters

Item = TypeVar("Item")

FEASIBLE = 1e-6
"""A solution that violates a constraint by more than this is not a solution."""


PROMOTED = "promoted"
"""Rule of a start that is a tree of fewer rows, from which a solver that eliminates goes on."""


class Status(Enum):
    """How a run ended, and what to do about it."""

    OPTIMAL = "feasible, and the first-order conditions hold to the tolerance"
    ACCEPTABLE = "feasible, and ended by the solver's own test; the residuals say how close"
    MAX_ITER = "the iteration limit was reached; raise max_iter for more of them"
    TIME_LIMIT = "the time limit was reached; raise time_limit for a longer search"
    INTERRUPTED = "interrupted by the user; this is the best point so far"
    INFEASIBLE = "the requirements are not met; loosen them or try other starts"
    FAILED = "the solver broke down; try other starts"

    @property
    def usable(self) -> bool:
        """Whether the point is a feasible tree."""
        return self not in (Status.INFEASIBLE, Status.FAILED)

    @property
    def cut_short(self) -> bool:
        """Whether time or the user ended the run."""
        return self in (Status.TIME_LIMIT, Status.INTERRUPTED)


@dataclass(frozen=True)
class Screening:
    """How the columns of a wide sparse matrix were screened.

    Attributes
    ----------
    n_columns : int
        Columns of the matrix.
    columns : array of int
        The working set of the tree; all other columns entered sparse products only.
    rounds : int
        Rounds in which columns joined the first working set.
    left : float
        Largest score of a column that never joined: under the count an estimated decrease of the
        objective, under other penalties the violation of its first-order condition; NaN if the
        training ended before columns were screened.
    complete : bool
        Whether that is zero, to the tolerance of the fit.
    """

    n_columns: int
    columns: NDArray[np.intp]
    rounds: int
    left: float
    complete: bool


@dataclass(frozen=True)
class Solution:
    """One training run: where it ended, how good the point is, and what it took.

    Attributes
    ----------
    parameters : TreeParameters
    objective : float
        Loss (with ridge and prior, where there are any) plus penalties, evaluated on the problem.
    cost : float
        Loss alone, with ridge and prior.
    violation, stationarity : float
        Largest constraint violation and largest first-order residual (problem/optimality.py).
    kkt : KKT
        All residuals with the multipliers of the class rates.
    status : Status
    n_iter : int
    seconds : float
    solver : str
    message : str
        The solver's own words.
    child_cpu_seconds : float
        Processor time of other processes that worked on this run; the clock of the calling
        thread does not see it.
    search : SearchSummary or None
        Of the tree that a fit keeps: how many different trees were found, how often this one, and
        why no more were looked for.
    screening : Screening or None
        Of the tree that a fit of a wide sparse matrix keeps: the columns that it is on.
    """

    parameters: TreeParameters
    objective: float
    cost: float
    violation: float
    stationarity: float
    kkt: KKT
    status: Status
    n_iter: int
    seconds: float
    solver: str
    message: str = ""
    child_cpu_seconds: float = 0.0
    search: SearchSummary | None = None
    screening: Screening | None = None

    @classmethod
    def measure(
        cls,
        problem: TrainingProblem,
        parameters: TreeParameters,
        status: Status,
        *,
        tol: float,
        n_iter: int,
        seconds: float,
        solver: str,
        message: str = "",
        child_cpu_seconds: float = 0.0,
    ) -> Solution:
        """Evaluate the point on the problem itself: nothing is taken on a solver's word.

        Outside the block of a restricted problem the tree is that of the anchor, whatever the
        solver returns. Residuals within ``tol`` (times the cost unit of the problem) make a run
        that ended by itself optimal; otherwise it is acceptable at best, whatever the solver
        called it.
        """
        parameters = problem.pin(parameters)
        sums = problem.evaluate_cost(parameters)
        residuals = kkt(problem, parameters, evaluation=sums)
        feasible = residuals.violation <= FEASIBLE and problem.allows(parameters)
        if status.usable and not feasible:
            status = Status.INFEASIBLE
        if status in (Status.OPTIMAL, Status.ACCEPTABLE):
            close = residuals.residual <= tol * problem.cost_unit
            status = Status.OPTIMAL if close else Status.ACCEPTABLE
        return cls(
            parameters=parameters,
            objective=sums.value + problem.paid(parameters),
            cost=sums.value,
            violation=residuals.violation,
            stationarity=max(residuals.stationarity, residuals.leaf_gap),
            kkt=residuals,
            status=status,
            n_iter=n_iter,
            seconds=seconds,
            solver=solver,
            message=message,
            child_cpu_seconds=child_cpu_seconds,
        )

    @classmethod
    def unmeasured(
        cls, problem: TrainingProblem, parameters: TreeParameters, cost: float, status: Status
    ) -> Solution:
        """A tree that is only to be compared with others: its residuals are not worked out."""
        unknown = KKT(np.nan, np.nan, np.nan, np.nan, np.zeros(problem.n_groups))
        return cls(
            parameters=parameters,
            objective=cost + problem.paid(parameters),
            cost=cost,
            violation=np.nan,
            stationarity=np.nan,
            kkt=unknown,
            status=status,
            n_iter=0,
            seconds=0.0,
            solver="",
            message="not measured",
        )


@dataclass(frozen=True)
class Start:
    """A starting tree and the rule that made it, which tells a solver how far to trust it.

    ``candidates`` are other trees by the same rule; a solver may start from any of them.
    ``seed`` is for solvers that draw random numbers of their own, ``shallower`` a fitted tree of
    fewer levels for those that can grow one.
    """

    parameters: TreeParameters
    rule: str = "given"
    candidates: tuple[TreeParameters, ...] = ()
    seed: int = 0
    shallower: TreeParameters | None = None

    def within(self, problem: TrainingProblem) -> Start:
        """Return the start with its trees within bounds that are no box, and in their order."""
        if problem.bounds.size is not None:
            return self
        trees = [problem.within(tree) for tree in (self.parameters, *self.candidates)]
        return replace(self, parameters=trees[0], candidates=tuple(trees[1:]))


@dataclass
class Cancel:
    """Whether all runs of a budget are to stop; threads look at it between slices."""

    requested: bool = False

    def __setattr__(self, name: str, value: bool) -> None:
        super().__setattr__(name, value)
        if value:
            seen()


# Seconds, or a part of a time limit, that what follows a run may take beyond it.
GRACE, GRACE_PART = 0.25, 0.05


@dataclass(frozen=True)
class Budget:
    """Limits of one run; ``None`` means the solver's own default.

    A ``rough`` run leads to a tree that is compared with others and finished by another run.
    All times are those of ``now``, the one clock that decides when a run ends and how long it
    works before it looks again.
    """

    max_iter: int | None = None
    tol: float = 1e-6
    time_limit: float | None = None
    rough: bool = False
    began: float = field(default_factory=lambda: Budget.now())
    cancel: Cancel = field(default_factory=Cancel)

    @staticmethod
    def now() -> float:
        """Seconds of the clock that budgets are held against."""
        return time.perf_counter()

    def stop(self) -> None:
        """End all runs of this budget at their next look at it, as Ctrl-C does."""
        self.cancel.requested = True

    @contextmanager
    def interruptible(self, kept: Sized | None = None) -> Iterator[None]:
        """Let Ctrl-C end the block and stop all runs of this budget, instead of raising.

        With ``kept``, what was found so far, Ctrl-C is raised on while that is empty.
        """
        try:
            yield
        except (KeyboardInterrupt, SystemError) as error:
            if not is_interruption(error):
                raise
            self.stop()
            if kept is not None and not len(kept):
                raise

    def insist(self, work: Callable[[], Item]) -> Item:
        """Return what ``work`` returns; where Ctrl-C ends it, of a second call.

        The second call finds this budget stopped: it should be short.
        """
        with self.interruptible():
            return work()
        return work()

    @property
    def stopped(self) -> bool:
        """Whether ``stop`` was called."""
        return self.cancel.requested

    @property
    def elapsed(self) -> float:
        return self.now() - self.began

    @property
    def remaining(self) -> float:
        return float("inf") if self.time_limit is None else self.time_limit - self.elapsed

    @property
    def exhausted(self) -> bool:
        """Whether a run should stop now, for lack of time or because it was cancelled."""
        if self.stopped:
            return True
        raise_again()
        return self.remaining <= 0

    def is_over(self) -> bool:
        """Whether what follows a run should end: a little later than the run itself."""
        grace = 0.0 if self.time_limit is None else max(GRACE, GRACE_PART * self.time_limit)
        return self.exhausted and (self.stopped or self.remaining < -grace)

    def check(self) -> None:
        """Raise ``OutOfBudget`` if a run should stop now: for use inside loops."""
        if self.exhausted:
            raise OutOfBudget

    def while_left(self, items: Iterable[Item], at_least: int = 0) -> Iterator[Item]:
        """Yield items until the budget ends; so many ``at_least``, whatever is left of it."""
        rest = iter(items)
        yield from islice(rest, at_least)
        while not self.exhausted:
            try:
                yield next(rest)
            except StopIteration:
                return

    def in_threads(
        self, work: Callable[[Item], None], items: Sequence[Item], workers: int, at_least: int = 0
    ) -> None:
        """Call ``work`` with items in some threads until the budget ends, and ``at_least`` so many.

        Ctrl-C stops all runs of this budget, and is raised when they have ended.
        """

        def work_in_time(number: int) -> None:
            if number < at_least or not self.exhausted:
                work(items[number])

        in_threads(work_in_time, range(len(items)), workers, self.stop)

    @property
    def verdict(self) -> Status:
        """The status of a run that stopped before its own end."""
        if self.stopped:
            return Status.INTERRUPTED
        return Status.TIME_LIMIT if self.remaining <= 0 else Status.MAX_ITER


Report = Callable[[int, float], None]
"""Receives the number of perturbations made and the lowest objective so far."""


def silent(done: int, objective: float) -> None:
    """A report that is not shown."""


class OutOfBudget(Exception):
    """The time or the iterations of a run are used up, or it was interrupted."""


class UnsupportedProblem(ValueError):
    """A solver was given a problem of a kind that it cannot solve."""


class Path(Protocol):
    """Trees that one start leads to, for problems that differ in strengths, ridge and limits."""

    @property
    def winner(self) -> TreeParameters | None:
        """Tree from which a deeper one may be grown; None before trees were asked for."""

    def trees(self, problems: Sequence[TrainingProblem], *, tight: bool) -> list[Solution]:
        """Return the best tree found for each problem.

        Fewer come back if the budget ends, but at least one. Without ``tight`` trees are only
        compared, and their last digits are not worked out.
        """


class Solver(ABC):
    """Base class of all solvers: a subclass defines ``name`` and ``solve``; the rest has defaults.

    Properties may be overridden by plain attributes, as a dataclass does.
    """

    eliminates: ClassVar[bool] = False
    """Whether the solver can minimise the "count" penalty, which has no slope."""

    keeps_order: ClassVar[bool] = False
    """Whether the solver keeps to the monotone order of a problem."""

    compiled_code: ClassVar[str | None] = None
    """Name of the compiled code that the solver needs (training/precompile.py); None for none."""

    searches: ClassVar[bool] = False
    """Whether ``improve`` searches around the trees of the starts."""

    keeps_rules: ClassVar[bool] = False
    """Whether trees of the solver keep ``TrainingProblem.rules``."""

    meets_rates: ClassVar[bool] = False
    """Whether the solver keeps to ``TrainingProblem.rate_limits``."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Name in reports and in ``Solution.solver``."""

    @property
    def start_rules(self) -> tuple[str, ...]:
        """Rules of ``solvers.starts`` by which starts are drawn, used in turn."""
        return ("groups",)

    @property
    def candidates(self) -> int:
        """Further trees drawn with each start, among which the solver may choose."""
        return 0

    @property
    def releases_gil(self) -> bool:
        """Whether starts may run side by side in threads; processes are used otherwise."""
        return False

    @property
    def zero_threshold(self) -> float:
        """Coefficients up to this size count as zero: interior points never reach zero itself."""
        return 0.0

    @abstractmethod
    def solve(self, problem: TrainingProblem, start: Start, budget: Budget) -> Solution:
        """Return the best tree found from ``start`` within ``budget``."""

    # --- what a solver may refuse -----------------------------------------------------------------

    def check(self) -> None:  # noqa: B027 (nothing to check by default)
        """Raise ValueError, in one sentence, if a parameter of the solver makes no sense."""

    def supports(self, problem: TrainingProblem) -> str | None:
        """Return None, or why the solver cannot solve ``problem``: the rest of a sentence."""
        return None

    # --- starts -----------------------------------------------------------------------------------

    def start_rule(self, problem: TrainingProblem, number: int) -> str:
        """Name of the rule by which the start with this number is drawn."""
        return self.start_rules[number % len(self.start_rules)]

    def n_candidates(self, problem: TrainingProblem) -> int:
        """Number of further trees drawn with each start on ``problem``."""
        return self.candidates

    def n_exploring(self, problem: TrainingProblem) -> int:
        """Number of first starts of any structure; later ones have the structure of the best.

        0 where all starts are drawn alike.
        """
        return 0

    def sample_sizes(self, problem: TrainingProblem) -> tuple[int, ...]:
        """Growing sizes of samples on which starts are compared; the last may be all rows.

        Empty where every start is solved to its end on all rows.
        """
        return ()

    # --- paths, effort, local search --------------------------------------------------------------

    def follows(self, problem: TrainingProblem) -> bool:
        """Whether ``path`` gives the trees of all strengths for problems of this kind."""
        return False

    def path(
        self, problem: TrainingProblem, start: Start, budget: Budget, *, compared: bool = False
    ) -> Path:
        """Return the path of trees from ``start``; its work is done when trees are asked for.

        It is asked of solvers that follow paths (``follows``). With ``compared``, features may be
        selected on fewer rows.
        """
        raise NotImplementedError(f"solver {self.name!r} follows no path.")

    def with_effort(self, effort: float) -> Solver:
        """Return the same solver with ``effort`` times its usual effort."""
        raise ValueError(
            f"solver {self.name!r} knows no effort; use solver='native', or raise n_starts."
        )

    def least_chance(self, problem: TrainingProblem) -> float:
        """Least chance of a better tree that one more perturbation is worth, after one start."""
        return math.inf

    def improve(
        self,
        problem: TrainingProblem,
        front: Sequence[Solution],
        seeds: Iterator[int],
        ends: EndPoints,
        budget: Budget,
        report: Report = silent,
    ) -> Solution:
        """Return a better solution near one of ``front``, or ``front[0]``, its best.

        Each of ``seeds`` is for one perturbation, which makes of it what it needs. ``ends`` holds
        the ends of the starts, receives those of the perturbations, and says when to stop.
        """
        return front[0]

    # --- solvers that use others, or rows of the user's -------------------------------------------

    def parts(self) -> tuple[Solver, ...]:
        """The solvers that this one calls."""
        return ()

    def adapted(self, transform: Callable[[Any], FloatArray], classes: NDArray[Any]) -> Solver:
        """Return the same solver with its own rows, if any, scaled and coded as X and y are."""
        return self


def refuse_unsupported(solver: Solver, problem: TrainingProblem) -> None:
    """Raise ``UnsupportedProblem`` in one sentence if the solver cannot solve the problem."""
    for part in (solver, *solver.parts()):
        if problem.order is not None and not part.keeps_order:
            raise UnsupportedProblem(
                f"solver {part.name!r} does not know monotone effects; use solver='native', or "
                "leave monotone out."
            )
        # What the solver itself says of the problem.
        reason = part.supports(problem)
        if reason is not None:
            advice = "set loss='cost'" if problem.log_loss else "set loss='log'"
            if part.name != "native" and (not problem.log_loss or problem.penalties.counts):
                advice = "use solver='native'"
            raise UnsupportedProblem(f"solver {part.name!r} {reason}; {advice}.")
        # Requirements that only some solvers keep.
        if problem.binding_rules is not None and not part.keeps_rules:
            raise UnsupportedProblem(
                f"solver {part.name!r} knows no rules about features (required, "
                "forbidden_together, at_most_one); use solver='native'."
            )
        if problem.rate_limits is not None and not part.meets_rates:
            raise UnsupportedProblem(
                f"solver {part.name!r} trains under no constraints or fairness; use "
                "solver='native'."
            )
