"""How far a fit is, on the console: a line for each start, and a live one for what runs now.

All of it goes to standard error. In a terminal or a notebook the last line is live; elsewhere
there are the finished lines only, without control codes.
"""

from __future__ import annotations

import multiprocessing
import threading
import time
from importlib.util import find_spec
from types import TracebackType
from typing import ClassVar, Self

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from softsplit.problem.problem import TrainingProblem
from softsplit.solvers.base import Budget, Solution
from softsplit.training.observer import Observer


class ConsoleProgress(Observer):
    """Shows starts, hops and points of a path; a context manager around the training.

    Parameters
    ----------
    budget : Budget
        Its clock tells the time gone, and the time left where there is a limit.
    n_points : int
        Points of the path that is walked; 0 for a single fit.
    console : rich Console, optional
        Where to write, if not to standard error.
    """

    _live_in_use: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, budget: Budget, n_points: int = 0, console: Console | None = None) -> None:
        self._budget = budget
        self._console = console or Console(stderr=True, highlight=False)
        self._lock = threading.RLock()
        self._points, self._n_points = 0, n_points
        self._stage, self._done, self._total = "", 0, 0
        self._best: float | None = None
        self._stage_began = self._point_began = time.perf_counter()
        self._spinner = Spinner("line")  # plain ASCII: any terminal can show it
        self._live: Live | None = None

    def __enter__(self) -> Self:
        # Two live lines on one terminal would overwrite each other: the first fit has it.
        if _can_be_live(self._console) and self._live_in_use.acquire(blocking=False):
            self._live = Live(
                self,
                console=self._console,
                transient=True,
                redirect_stdout=False,  # it would end up on standard error
            )
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            try:
                self._live.stop()
            finally:
                self._live = None
                self._live_in_use.release()

    def starting(self, total: int) -> None:
        self._begin("starts", total)
        self._best = None

    def start_ended(self, number: int, rule: str, solution: Solution) -> None:
        with self._lock:
            self._done += 1
            better = solution.status.usable and self._is_lower(solution.objective)
            if better:
                self._best = solution.objective
            best = "-" if self._best is None else f"{self._best:.6g}"
            width = len(str(self._total))
            self._print(
                f"start {number:>{width}} of {self._total}  {rule:<7}  {_end(solution)}  "
                f"{solution.seconds:.2f} s  best {best}",
                better,
            )

    def searching(self) -> None:
        self._begin("hops", 0)

    def hopped(self, done: int, objective: float) -> None:
        self._done = done
        if self._is_lower(objective):
            self._best = objective

    def search_ended(self, solution: Solution) -> None:
        self._stage = ""
        seconds = time.perf_counter() - self._stage_began
        self._print(f"hops {self._done}  {_end(solution)}  {seconds:.2f} s", True)
        if solution.search is not None:
            self._print(f"{solution.search}", False)

    def point_ended(self, problem: TrainingProblem, solution: Solution) -> None:
        self._points += 1
        self._stage = ""
        now = time.perf_counter()
        seconds, self._point_began = now - self._point_began, now
        pair = problem.penalties
        width = len(str(self._n_points))
        self._print(
            f"point {self._points:>{width}} of {self._n_points}  "
            f"local {pair.local.strength:<9.4g}  global {pair.global_.strength:<9.4g}  "
            f"{_end(solution)}  {seconds:.2f} s",
            True,
        )

    def candidate_judged(
        self,
        label: str,
        score: float,
        n_features: float,
        log_loss: tuple[float, float] | None = None,
    ) -> None:
        told = (
            "" if log_loss is None else "  log-loss {:.4f}, with its size {:.4f}".format(*log_loss)
        )
        self._print(f"{label}{told}  score {score:.4f}  features {n_features:.1f}", False)

    def _begin(self, stage: str, total: int) -> None:
        self._stage, self._done, self._total = stage, 0, total
        self._stage_began = time.perf_counter()

    def _is_lower(self, objective: float) -> bool:
        return self._best is None or objective < self._best

    def _print(self, line: str, strong: bool) -> None:
        self._console.print(Text(line, style="bold" if strong else ""), soft_wrap=True)

    def __rich__(self) -> Spinner:
        """The live line, as of now."""
        parts = []
        if self._n_points:
            parts.append(f"points {self._points} of {self._n_points}")
        if self._stage:
            total = f" of {self._total}" if self._total else ""  # hops end when they end
            parts.append(f"{self._stage} {self._done}{total}")
            if self._best is not None:
                parts.append(f"best {self._best:.6g}")
        parts.append(f"{self._budget.elapsed:.0f} s")
        if self._budget.time_limit is not None:
            parts.append(f"{max(self._budget.remaining, 0.0):.0f} s left")
        self._spinner.update(text=Text("  ".join(parts)))
        return self._spinner


def _can_be_live(console: Console) -> bool:
    """In a terminal, or a notebook with widgets; and not from one of several processes."""
    if multiprocessing.parent_process() is not None:
        return False
    if console.is_jupyter:
        return find_spec("ipywidgets") is not None
    return console.is_interactive


def _end(solution: Solution) -> str:
    status = solution.status.name.lower().replace("_", " ")
    return f"objective {solution.objective:<10.6g}  {status:<11}"
