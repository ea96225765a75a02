"""What a decomposition run did, one row per macro-iteration."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field

import pandas as pd

from softsplit.solvers.base import Solution


@dataclass(frozen=True)
class TraceRow:
    """The run after a macro-iteration; number 0 is the start or the initialisation.

    Attributes
    ----------
    macro_iteration : int
    objective : float
        Of the whole problem, without a proximal term.
    violation : float
        Largest violation of a constraint.
    train_accuracy, test_accuracy : float
        The second is NaN unless the solver was given rows to watch.
    cpu_seconds, seconds : float
        Spent so far on solving, by the processor and by the clock; looking at accuracies is not
        counted. IPOPT under a time limit runs in a process of its own; its processor time is
        counted, the start of that process is not.
    n_iter : int
        Iterations of the inner solver so far.
    steps, accepted : int
        Blocks solved in this macro-iteration, and those that lowered the objective.
    """

    macro_iteration: int
    objective: float
    violation: float
    train_accuracy: float
    test_accuracy: float
    cpu_seconds: float
    seconds: float
    n_iter: int
    steps: int
    accepted: int


@dataclass(frozen=True)
class DecompositionTrace:
    """All rows of a run; ``initialised`` says whether row 0 comes after an initialisation."""

    rows: tuple[TraceRow, ...]
    initialised: bool = False

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> TraceRow:
        return self.rows[index]

    def to_frame(self) -> pd.DataFrame:
        return pd.DataFrame([asdict(row) for row in self.rows])


@dataclass(frozen=True)
class TracedSolution(Solution):
    """A solution with the trace of the run that found it."""

    trace: DecompositionTrace = field(default_factory=lambda: DecompositionTrace(()))


@dataclass
class Stopwatch:
    """Processor and wall time of one thread, with pauses; that of its children is added."""

    cpu_seconds: float = 0.0
    seconds: float = 0.0
    child_cpu_seconds: float = 0.0
    _cpu: float = field(default_factory=time.thread_time)
    _wall: float = field(default_factory=time.perf_counter)

    def pause(self) -> None:
        self.cpu_seconds += time.thread_time() - self._cpu
        self.seconds += time.perf_counter() - self._wall

    def add_child(self, cpu_seconds: float) -> None:
        """Count what another process has spent."""
        self.child_cpu_seconds += cpu_seconds
        self.cpu_seconds += cpu_seconds

    def resume(self) -> None:
        self._cpu, self._wall = time.thread_time(), time.perf_counter()
