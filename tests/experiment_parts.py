"""A small experiment on bundled data, and solvers that fail on purpose."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from softsplit.experiments.spec import Spec, parse_spec
from softsplit.experiments.store import TIMES
from softsplit.solvers import BasinHoppingSolver
from softsplit.solvers.base import Budget, Solution, Start, Status

SMALL = """
name = "small"
title = "A small experiment"
datasets = ["iris", "wine"]
models = ["L1", "L0glob"]
starts = 2
only_folds = [0, 1]

[grid]
strengths = [0.25, 1.0, 4.0]

[inner]
folds = 2
starts = 1
"""
"""2 data sets x 2 folds x (2 starts + 2 inner folds) x 2 models x 3 strengths = 96 cells."""


def small(**changes: object) -> Spec:
    spec = parse_spec(SMALL, "small.toml")
    return Spec.model_validate({**spec.model_dump(), **changes})


def contents(path: object) -> list[tuple[object, ...]]:
    """All rows of a store in the order of their keys, all columns but the times."""
    with sqlite3.connect(path) as base:
        names = [row[1] for row in base.execute("PRAGMA table_info(cells)")]
        kept = [name for name in names if name not in TIMES]
        found = base.execute(f"SELECT {', '.join(kept)} FROM cells ORDER BY {', '.join(kept[:9])}")
        rows = list(found)
    base.close()
    return rows


def is_strong(problem: object) -> bool:
    """The last of the three strengths of ``SMALL``."""
    pair = problem.penalties  # type: ignore[attr-defined]
    return bool(max(pair.local.strength, pair.global_.strength) == 4.0)


@dataclass(frozen=True)
class RaisingSolver(BasinHoppingSolver):
    """Raises at the middle strength."""

    def solve(self, problem: object, start: Start, budget: Budget) -> Solution:
        pair = problem.penalties  # type: ignore[attr-defined]
        if max(pair.local.strength, pair.global_.strength) == 1.0:
            raise ArithmeticError("division by cucumber")
        return super().solve(problem, start, budget)  # type: ignore[arg-type]


@dataclass(frozen=True)
class InterruptedSolver(BasinHoppingSolver):
    """Behaves as if the user pressed Ctrl-C at the strongest strength."""

    def solve(self, problem: object, start: Start, budget: Budget) -> Solution:
        from dataclasses import replace

        found = super().solve(problem, start, budget)  # type: ignore[arg-type]
        return replace(found, status=Status.INTERRUPTED) if is_strong(problem) else found
