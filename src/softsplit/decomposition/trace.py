"""What a decomposition run did, one row per macro-iteration; accuracy on rows it watches."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softsplit.engines.samples import Samples
from softsplit.solvers.base import Solution
from softsplit.support.arrays import FloatArray
from softsplit.tree.parameters import TreeParameters
from softsplit.tree.routing import mixed_values


@dataclass(frozen=True)
class EvaluationSet:
    """Rows and their classes.

    Handed to ``SoftTreeClassifier`` inside a solver, X and y are in the user's units and labels. A
    solver that is called by itself takes X scaled as its problem is, and class indices.
    """

    X: Any = field(repr=False)
    y: Any = field(repr=False)

    def adapted(
        self, transform: Callable[[Any], FloatArray], classes: NDArray[Any]
    ) -> EvaluationSet:
        """The same in the units of the solver; a label that training has not seen becomes -1."""
        try:
            rows = transform(self.X)
        except (TypeError, ValueError) as error:
            raise ValueError(f"an EvaluationSet does not fit the training rows: {error}") from None
        labels = self._labels(len(rows)).tolist()
        index = {label: k for k, label in enumerate(classes.tolist())}
        numbers = np.array([index.get(label, -1) for label in labels])
        if np.all(numbers < 0):
            raise ValueError(
                f"no label of an EvaluationSet is a class of y; it has {labels[0]!r}, "
                f"y has {classes.tolist()[0]!r}."
            )
        return EvaluationSet(rows, numbers)

    def check(self, n_features: int) -> None:
        """Refuse rows that a solver cannot look at, in one sentence."""
        try:
            rows = np.asarray(self.X, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError("X of an EvaluationSet must be an array of numbers.") from None
        if rows.ndim != 2 or len(rows) == 0 or rows.shape[1] != n_features:
            raise ValueError(
                f"X of an EvaluationSet must have rows of {n_features} features, as in training, "
                f"got an array of shape {rows.shape}."
            )
        if not np.all(np.isfinite(rows)):
            raise ValueError("X of an EvaluationSet holds NaN or infinity; drop those rows.")
        if self._labels(len(rows)).dtype.kind not in "iu":
            raise ValueError("y of an EvaluationSet must hold class indices for a bare solver.")

    def _labels(self, n_rows: int) -> NDArray[Any]:
        labels = np.asarray(self.y)
        if labels.shape != (n_rows,):
            raise ValueError(
                f"y of an EvaluationSet must hold one label for each of its {n_rows} rows, got an "
                f"array of shape {labels.shape}."
            )
        return labels

    def accuracy(self, parameters: TreeParameters, steepness: float) -> float:
        features = np.asarray(self.X, dtype=np.float64).T
        called = np.argmax(mixed_values(parameters, features, steepness), axis=0)
        return float(np.mean(called == np.asarray(self.y)))


def training_accuracy(parameters: TreeParameters, samples: Samples, steepness: float) -> float:
    """Share of the training weight that is classified correctly."""
    called = np.argmax(mixed_values(parameters, samples.features, steepness), axis=0)
    right = called == samples.labels
    return float(np.sum(samples.weights[right]) / np.sum(samples.weights))


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
