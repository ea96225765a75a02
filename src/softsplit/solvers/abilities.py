"""What a solver may be able to do beyond solving; callers ask whether it can, and else do without.

Each ability is a protocol. A solver that has its methods has the ability; none need be declared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

from numpy.typing import NDArray

from softsplit.problem.problem import TrainingProblem
from softsplit.solvers.base import Budget, Draw, Solution, Solver, Start
from softsplit.solvers.stopping import EndPoints
from softsplit.support.arrays import FloatArray
from softsplit.tree.parameters import TreeParameters

Report = Callable[[int, float], None]
"""Told how many hops are made, and the lowest objective so far, before the last leaf step."""


def silent(done: int, objective: float) -> None:
    """A report to nobody."""


@runtime_checkable
class Checked(Protocol):
    """A solver with parameters of its own to check before any work is done."""

    def check(self) -> None:
        """Refuse parameters that make no sense, in one sentence."""


class UnsupportedProblem(ValueError):
    """A solver was handed a problem of a kind that it cannot solve."""


@runtime_checkable
class Selective(Protocol):
    """A solver that some problems are not for."""

    def supports(self, problem: TrainingProblem) -> str | None:
        """None, or why not: a text that follows the name of the solver in a sentence."""


def refuse_unsupported(solver: Solver, problem: TrainingProblem) -> None:
    """Raise ``UnsupportedProblem`` in one sentence if the solver cannot solve the problem."""
    parts = solver.parts() if isinstance(solver, Composed) else ()
    for one in (solver, *parts):
        reason = one.supports(problem) if isinstance(one, Selective) else None
        if reason is not None:
            native = one.name != "native" and (problem.boxed or problem.penalties.counts)
            advice = "use solver='native'" if native else "set loss='cost'"
            raise UnsupportedProblem(f"solver {one.name!r} {reason}; {advice}.")


@runtime_checkable
class Adaptable(Protocol):
    """A solver that looks at rows of the user's, which must be scaled and coded as X and y are."""

    def adapted(self, transform: Callable[[Any], FloatArray], classes: NDArray[Any]) -> Solver:
        """The same solver with those rows in the units of a training problem."""


@runtime_checkable
class Composed(Protocol):
    """A solver that has others do the work."""

    def parts(self) -> tuple[Solver, ...]:
        """The solvers that it calls."""


@runtime_checkable
class Ruled(Protocol):
    """A solver whose starts depend on the problem."""

    def rule(self, problem: TrainingProblem, number: int) -> str:
        """Name of the rule of the start with this number."""


@runtime_checkable
class Exploring(Protocol):
    """A solver that wants its later starts to be like the best of the first."""

    def explorers(self, problem: TrainingProblem) -> int:
        """How many are the first; 0 where all starts are to be drawn alike."""


@runtime_checkable
class Thrifty(Protocol):
    """A solver that looks for trees on samples where rows are many, and then finishes the best."""

    def samples(self, problem: TrainingProblem) -> tuple[int, ...]:
        """Sizes of the samples, growing, the last of which may be that of all rows.

        Empty where every start is to be solved to its end on all rows.
        """


class Path(Protocol):
    """What one start has led to: trees for problems that differ in strengths and ridge only."""

    @property
    def stem(self) -> TreeParameters | None:
        """Where it begins, for deeper trees to be grown from; None before trees were asked for."""

    def trees(self, problems: Sequence[TrainingProblem], *, tight: bool) -> list[Solution]:
        """The best tree found for each problem.

        Fewer come back if the budget ends, but at least one. Without ``tight`` trees are only to be
        compared.
        """


@runtime_checkable
class Follower(Protocol):
    """A solver that can follow a whole path of strengths from one start."""

    def follows(self, problem: TrainingProblem) -> bool:
        """Whether it does for problems of this kind."""

    def follow(
        self, problem: TrainingProblem, start: Start, budget: Budget, *, compared: bool = False
    ) -> Path:
        """The path from a start; its work is done when trees are asked for.

        Features may be looked for on fewer rows where trees are only to be ``compared``.
        """


@runtime_checkable
class Adjustable(Protocol):
    """A solver that can look for a good tree with more or less effort."""

    def with_effort(self, effort: float) -> Solver:
        """The same solver with so many times its usual effort."""

    def rivals_for(self, problem: TrainingProblem) -> int:
        """How many rivals it wants with each start on this problem, for its effort."""


@runtime_checkable
class Improver(Protocol):
    """A solver that can also search around the trees it has found."""

    def worthwhile(self, problem: TrainingProblem) -> float:
        """The least chance of a better tree that a hop is worth, after a single start.

        Infinity if there is to be no search.
        """

    def improve(
        self,
        problem: TrainingProblem,
        front: Sequence[Solution],
        draws: Iterator[Draw],
        ends: EndPoints,
        budget: Budget,
        report: Report = silent,
    ) -> Solution:
        """A better solution near one of ``front``, or the first of them, its best.

        ``ends`` knows those of the starts, is told those of the hops, and says when to stop.
        """
