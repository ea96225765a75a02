"""Part ``hostile`` of requirements.py: combinations of requirements that cannot hold.

Each draws one to three hostile cases of tests/requirement_cases.py and harmless parameters around
them, for an estimator, a search or a path. It must end in one sentence before a solver is called.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from softsplit import (
    Parity,
    RateConstraint,
    SoftTreeClassifier,
    SoftTreeClassifierCV,
    strength_path,
)
from softsplit.solvers.basin_hopping.solver import BasinHoppingSolver
from softsplit.solvers.elimination.solver import EliminationRun

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from requirement_cases import HOSTILE as TESTED
from requirement_cases import hostile_table

COMBINATIONS = 500

HOSTILE = [case for case in TESTED if "solver" not in case[0]]
"""Other solvers are compiled before a search asks whether they fit: the tests have that case."""

HARMLESS: list[dict[str, Any]] = [
    {"curves": 0}, {"n_starts": 2}, {"random_state": 3}, {"class_weight": "balanced"},
    {"feature_costs": {"e": 2.0}}, {"required": ["f"]}, {"at_most_one": [["d", "e"]]},
    {"forbidden_together": [["d", "town"]]}, {"max_questions": 7}, {"groups": [["d", "e"]]},
    {"monotone": {"c": "+"}}, {"fairness": Parity("town", 0.2)}, {"loss": "cost"},
    {"constraints": RateConstraint(("town", "ulm"), 1, at_most=0.9)},
]  # fmt: skip


class Trained(Exception):
    """A solver was called."""


def refuse(*_: Any, **__: Any) -> Any:
    raise Trained


def drawn(rng: np.random.Generator) -> dict[str, Any]:
    """Parameters of which at least one cannot hold; a hostile one is never replaced."""
    chosen = [HOSTILE[i][0] for i in rng.permutation(len(HOSTILE))[: rng.integers(1, 4)]]
    found = dict(chosen[0])
    others = [*chosen[1:], *(HARMLESS[i] for i in rng.permutation(len(HARMLESS))[:2])]
    for given in others:
        if not set(given) & set(found):
            found |= given
    return {"feature_types": {"dropped": "drop"}, **found}


def asked(number: int, given: dict[str, Any], X: Any, y: Any) -> str | None:
    """The sentence, or None with which a combination passes."""
    data = given.pop("fit", {})
    try:
        if number % 3 == 0:
            SoftTreeClassifier(**given).fit(X, y, **data)
        elif number % 3 == 1:
            names = {"depth": "depths", "penalty": "penalties"}
            given = {names.get(n, n): [v] if n in names else v for n, v in given.items()}
            SoftTreeClassifierCV(**given).fit(X, y, **data)
        else:
            strength_path(X, y, estimator=SoftTreeClassifier(**given), n_points=2, **data)
    except (ValueError, TypeError) as error:
        return str(error)
    return None


def lines() -> list[str]:
    """The section of docs/results/requirements.md."""
    X, y = hostile_table()
    rng, ends = np.random.default_rng(0), Counter[str]()
    parameters: Counter[str] = Counter()
    kept = EliminationRun.__init__, BasinHoppingSolver.solve
    EliminationRun.__init__ = BasinHoppingSolver.solve = refuse  # type: ignore[method-assign]
    try:
        for number in range(COMBINATIONS):
            given = drawn(rng)
            parameters.update(list(given))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    said = asked(number, dict(given), X, y)
                except Trained:
                    ends["trained"] += 1
                    print(f"trained: {given}")
                    continue
            one = said is not None and "\n" not in said and said.endswith((".", "?"))
            ends["one sentence" if one else "something else"] += 1
            if not one:
                print(f"{given}: {said}")
    finally:
        EliminationRun.__init__, BasinHoppingSolver.solve = kept  # type: ignore[method-assign]
    named = ", ".join(sorted(set(parameters) - {"feature_types", "curves", "n_starts"}))
    return [
        "## What cannot hold",
        "",
        f"{COMBINATIONS} random combinations of {len(HOSTILE)} hostile cases with each other and "
        "with harmless parameters, for `SoftTreeClassifier`, `SoftTreeClassifierCV` and "
        "`strength_path`: "
        f"**{ends['one sentence']} end in one sentence, {ends['trained']} reach a solver, "
        f"{ends['something else']} end otherwise.** Parameters that took part: {named}.",
    ]
