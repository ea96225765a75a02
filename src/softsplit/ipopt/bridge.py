"""One nonlinear program handed to IPOPT through CasADi, with hand-written derivatives.

CasADi is used as a carrier only: its callbacks give the buffers that IPOPT reads, and none of its
own differentiation takes place. ``IpoptProgress`` keeps the best iterate of a run that may be
stopped, ``IpoptOutcome`` is what a run comes to; ``solver.py`` decides what a result is worth.
"""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np

from softsplit.ipopt.program import Pattern, SubstitutedProgram
from softsplit.problem.problem import TrainingProblem
from softsplit.solvers.base import FEASIBLE, Status
from softsplit.support.arrays import FloatArray
from softsplit.tree.parameters import TreeParameters

Listener = Callable[[TreeParameters, float, float], None]
"""Takes a tree, its objective and its largest violation."""


@dataclass(frozen=True)
class IpoptOutcome:
    """Where a run ended, before it is measured on the problem.

    ``child_cpu_seconds`` is the processor time of the run where it had a process of its own.
    """

    parameters: TreeParameters
    status: Status
    n_iter: int
    message: str
    child_cpu_seconds: float = 0.0


@dataclass
class IpoptProgress:
    """The iterates worth keeping: the last one, and the best that meets the constraints."""

    listener: Listener | None = None
    last: TreeParameters | None = None
    best: TreeParameters | None = None
    lowest: float = np.inf
    n_iter: int = 0

    def keep(self, parameters: TreeParameters, value: float, violation: float) -> None:
        """Note one iterate."""
        self.last = parameters
        self.n_iter += 1
        if violation <= 0.1 * FEASIBLE and value < self.lowest:
            self.best, self.lowest = parameters, value
        if self.listener is not None:
            self.listener(parameters, value, violation)

    def pick(self, problem: TrainingProblem, fallback: TreeParameters) -> TreeParameters:
        """The last iterate if it is feasible, else the best feasible one, else the last."""
        last = tidy(problem, fallback if self.last is None else self.last)
        if self.best is None or problem.violation(last).largest <= FEASIBLE:
            return last
        return tidy(problem, self.best)


def tidy(problem: TrainingProblem, parameters: TreeParameters) -> TreeParameters:
    """Remove violations of bounds and of the leaf simplex the size of IPOPT's tolerance."""
    leaf_values = np.clip(parameters.leaf_values, 0.0, 1.0)
    totals = leaf_values.sum(axis=0)
    leaf_values = leaf_values / np.where(totals > 0, totals, 1.0)
    return problem.pin(
        TreeParameters(
            problem.bounds.project(parameters.weights),
            problem.bounds.project_thresholds(parameters.thresholds),
            leaf_values,
        )
    )


logger = logging.getLogger(__name__)

Buffers = Sequence[FloatArray | None]
Fill = Callable[[Buffers, Buffers], None]
Report = Callable[[FloatArray, float, float], None]
"""Takes x, f(x) and the largest violation of a constraint, once per iteration."""


def import_casadi() -> Any:
    """CasADi, or an error that says how to get it."""
    try:
        casadi: Any = import_module("casadi")
    except ImportError as error:
        raise ImportError(
            "IpoptSolver needs casadi, which brings IPOPT with it; install it with "
            "pip install 'softsplit[ipopt]'."
        ) from error
    if not casadi.has_nlpsol("ipopt"):
        raise ImportError(
            f"casadi {casadi.__version__} is installed but cannot load IPOPT; install another "
            "version with pip install --upgrade casadi."
        )
    return casadi


@dataclass
class IpoptRun:
    """How IPOPT ended; ``error`` is what a callback raised, if anything."""

    x: FloatArray
    return_status: str
    n_iter: int
    error: str = ""


@dataclass
class _Watch:
    """What the callbacks notice while IPOPT runs."""

    report: Report | None
    interrupted: bool = False
    error: str = ""
    last: FloatArray | None = field(default=None, repr=False)
    n_iter: int = 0


def run_ipopt(
    program: SubstitutedProgram, x0: FloatArray, options: dict[str, Any], report: Report | None
) -> IpoptRun:
    """Solve ``program`` from ``x0``; an interrupt ends the run after the current iteration."""
    casadi = import_casadi()
    watch = _Watch(report)
    with _held_interrupts(watch):
        try:
            # The callbacks must outlive the solver: CasADi keeps no reference to them.
            solver, _callbacks = _make_solver(casadi, program, options, watch)
            result = solver(
                x0=x0,
                lbx=program.lower,
                ubx=program.upper,
                lbg=program.constraint_lower,
                ubg=program.constraint_upper,
            )
            x = np.array(result["x"], dtype=float).ravel()
            statistics = solver.stats()
            status, n_iter = statistics["return_status"], int(statistics["iter_count"])
        except RuntimeError as error:
            watch.error = watch.error or str(error).strip().splitlines()[-1]
            x = x0 if watch.last is None else watch.last
            status, n_iter = "Exception", watch.n_iter
    return IpoptRun(x, status, n_iter, watch.error)


@contextmanager
def _held_interrupts(watch: _Watch) -> Iterator[None]:
    """Note Ctrl-C instead of raising it in the middle of foreign code."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def note(_signal: int, _frame: Any) -> None:
        watch.interrupted = True

    before = signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _make_solver(
    casadi: Any, program: SubstitutedProgram, options: dict[str, Any], watch: _Watch
) -> tuple[Any, list[Any]]:
    point, scalar = _dense(casadi, len(program.lower)), _dense(casadi, 1)
    multipliers = _dense(casadi, len(program.constraint_lower))
    empty = casadi.Sparsity(0, 0)
    jacobian = _sparsity(casadi, program.jacobian_pattern)
    hessian = _sparsity(casadi, program.hessian_pattern)
    make = _callback_maker(casadi, watch)
    fill = _Fills(program)
    value = make("f", [point], [scalar], fill.value)
    constraints = make("g", [point], [multipliers], fill.constraints)
    gradient = make("grad_f", [point, empty], [scalar, point], fill.gradient)
    slopes = make("jac_g", [point, empty], [multipliers, jacobian], fill.jacobian)
    lagrangian = [point, empty, scalar, multipliers]
    curvature = make("hess_lag", lagrangian, [hessian], fill.hessian)
    watched = [point, scalar, multipliers, point, multipliers, empty]
    step = make("step", watched, [scalar], _watcher(program, watch))
    x = casadi.MX.sym("x", len(program.lower))
    solver = casadi.nlpsol(
        "softsplit",
        "ipopt",
        {"x": x, "f": value(x), "g": constraints(x)},
        {
            "grad_f": gradient,
            "jac_g": slopes,
            "hess_lag": curvature,
            "iteration_callback": step,
            "iteration_callback_ignore_errors": True,
            "no_nlp_grad": True,
            "print_time": False,
            "show_eval_warnings": False,
            "ipopt": options,
        },
    )
    return solver, [value, constraints, gradient, slopes, curvature, step]


def _dense(casadi: Any, size: int) -> Any:
    return casadi.Sparsity.dense(size, 1)


def _sparsity(casadi: Any, pattern: Pattern) -> Any:
    return casadi.Sparsity(
        *pattern.shape, pattern.column_starts.tolist(), pattern.row_indices.tolist()
    )


@dataclass(frozen=True)
class _Fills:
    """Fill IPOPT's buffers; an output that is not wanted is None."""

    program: SubstitutedProgram

    def value(self, given: Buffers, wanted: Buffers) -> None:
        _put(wanted[0], self.program.objective(_point(given)))

    def constraints(self, given: Buffers, wanted: Buffers) -> None:
        _put(wanted[0], self.program.constraints(_point(given)))

    def gradient(self, given: Buffers, wanted: Buffers) -> None:
        if wanted[0] is not None:
            _put(wanted[0], self.program.objective(_point(given)))
        if wanted[1] is not None:
            _put(wanted[1], self.program.gradient(_point(given)))

    def jacobian(self, given: Buffers, wanted: Buffers) -> None:
        if wanted[0] is not None:
            _put(wanted[0], self.program.constraints(_point(given)))
        if wanted[1] is not None:
            values = self.program.jacobian(_point(given))
            _put(wanted[1], self.program.jacobian_pattern.gather(values))

    def hessian(self, given: Buffers, wanted: Buffers) -> None:
        # A multiplier that CasADi knows to be zero comes without a buffer.
        factor = 0.0 if given[2] is None else float(given[2][0])
        size = len(self.program.constraint_lower)
        multipliers = np.zeros(size) if given[3] is None else np.array(given[3])
        values = self.program.hessian(_point(given), factor, multipliers)
        _put(wanted[0], self.program.hessian_pattern.gather(values))


def _point(given: Buffers) -> FloatArray:
    assert given[0] is not None
    return np.array(given[0])


def _put(buffer: FloatArray | None, values: FloatArray | float) -> None:
    if buffer is not None:
        if not np.all(np.isfinite(values)):
            raise FloatingPointError("a function value or derivative is not a finite number.")
        buffer[:] = values


def _watcher(program: SubstitutedProgram, watch: _Watch) -> Fill:
    def step(given: Buffers, wanted: Buffers) -> None:
        x, value, g = given[0], given[1], given[2]
        assert x is not None and value is not None
        watch.last = np.array(x)
        watch.n_iter += 1
        short = np.zeros(1) if g is None else program.constraint_lower - g
        over = np.zeros(1) if g is None else g - program.constraint_upper
        violation = max(0.0, np.max(short, initial=0.0), np.max(over, initial=0.0))
        if watch.report is not None:
            watch.report(watch.last, float(value[0]), float(violation))
        _put(wanted[0], float(watch.interrupted))

    return step


def _callback_maker(casadi: Any, watch: _Watch) -> Callable[..., Any]:
    """A function that makes CasADi callbacks; the class can exist only once CasADi is there."""

    class BufferCallback(casadi.Callback):
        def __init__(self, name: str, given: list[Any], wanted: list[Any], fill: Fill) -> None:
            casadi.Callback.__init__(self)
            self.given, self.wanted, self.fill = given, wanted, fill
            self.construct(name, {})

        def get_n_in(self) -> int:
            return len(self.given)

        def get_n_out(self) -> int:
            return len(self.wanted)

        def get_sparsity_in(self, i: int) -> Any:
            return self.given[i]

        def get_sparsity_out(self, i: int) -> Any:
            return self.wanted[i]

        def has_eval_buffer(self, *_arguments: Any) -> bool:
            return True

        def eval_buffer(self, given: Sequence[Any], wanted: Sequence[Any]) -> int:
            try:
                self.fill(_arrays(given), _arrays(wanted))
            except FloatingPointError as error:
                # IPOPT shortens its step where a function cannot be evaluated.
                logger.debug("%s", error)
                return 1
            except Exception as error:
                watch.error = watch.error or f"{type(error).__name__}: {error}"
                logger.debug("callback failed", exc_info=True)
                return 1
            return 0

    return BufferCallback


def _arrays(buffers: Sequence[Any]) -> list[FloatArray | None]:
    return [None if buffer is None else np.frombuffer(buffer) for buffer in buffers]
