"""What must hold of every call, however strange its input: a sound tree, or one sentence.

``outcome(case)`` makes the call and looks at everything that comes back. Feasibility is taken from
the library's own figure and, apart from it, from the paper's equations.
"""

from __future__ import annotations

import io
import json
import re
import time
import warnings
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning
from typer.testing import CliRunner

from brute_force import left_and_right_ancestors
from hostile_cases import HostileCase, HostileTable
from softsplit import (
    SoftTreeClassifier,
    SoftTreeClassifierCV,
    dumps_model,
    export_markdown,
    export_text,
    loads_model,
    strength_path,
)
from softsplit.cli import app
from softsplit.estimators.row_reading import checked_rows
from softsplit.fitted.ranges import FarOutsideWarning
from softsplit.variables import ColumnsLeftOut

FEASIBLE = 1e-6
"""As in softsplit.solvers.base: a tree that violates a constraint by more is none."""

MANY_CLASSES = "The number of unique classes is greater than 50%"
"""scikit-learn's word on labels that may be no classes."""

INTERNALS = re.compile(
    r"ufunc|broadcast|operands|object at 0x|Traceback|out of bounds|NoneType|zero-size|"
    r"setting an array element|singular matrix|must be real number|unexpected|unhashable|"
    r"np\.|ndarray|cannot reshape|not subscriptable|has no attribute|<class '|"
    r"not supported between|truth value"
)
"""What numpy, scipy and Python say to programmers."""

LONGEST = 400


@dataclass(frozen=True)
class Outcome:
    """How a call ended: with trees, or with a sentence; and the seconds beyond its limit.

    ``overrun`` is by the clock on the wall, ``busy`` by the processor time of this process: on a
    machine that others use too, only the second says what the call itself did.
    """

    trees: int
    sentence: str = ""
    overrun: float = 0.0
    busy: float = 0.0


class Stopwatch:
    """Seconds since it was made, by the wall and by the processor."""

    def __init__(self) -> None:
        self.wall, self.processor = time.perf_counter(), time.process_time()

    def beyond(self, limit: float) -> tuple[float, float]:
        """By how much both exceed a limit."""
        wall, processor = time.perf_counter() - self.wall, time.process_time() - self.processor
        return max(0.0, wall - limit), max(0.0, processor - limit)


def is_one_sentence(text: str) -> bool:
    """One line that speaks of what the user gave, not of how the library is made."""
    return 10 <= len(text) <= LONGEST and "\n" not in text and not INTERNALS.search(text)


def outcome(case: HostileCase) -> Outcome:
    """Make the call; raises AssertionError if it breaks a promise."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        watch, trees, said = Stopwatch(), [], ""
        try:
            trees = CALLS[case.call](case)
        except (ValueError, TypeError) as error:
            said = str(error)
        late = watch.beyond(_limit(case))
        for tree in trees:
            check_tree(tree, case)
    assert not said or is_one_sentence(said), f"not one clear sentence: {said!r}"
    leaked = [w for w in caught if not is_expected(w)]
    assert not leaked, f"a warning leaked: {leaked[0].message} ({leaked[0].filename})"
    return Outcome(len(trees), said, *late)


def is_expected(warning: warnings.WarningMessage) -> bool:
    """A limit was reached, columns are left out, values far outside, or scikit-learn's words."""
    kinds = ConvergenceWarning | DataConversionWarning | ColumnsLeftOut | FarOutsideWarning
    known = issubclass(warning.category, kinds)
    return known or str(warning.message).startswith(MANY_CLASSES)


def _limit(case: HostileCase) -> float:
    limit = case.parameters.get("time_limit")
    return limit if isinstance(limit, float) and np.isfinite(limit) else np.inf


def _fit(case: HostileCase) -> list[SoftTreeClassifier]:
    model = SoftTreeClassifier(**case.parameters)
    return [model.fit(case.X, case.y, sample_weight=case.sample_weight)]


@cache
def _fitted_before() -> SoftTreeClassifier:
    X = np.random.default_rng(0).normal(size=(40, 3))
    return SoftTreeClassifier(depth=1, n_starts=1, random_state=0).fit(X, X[:, 0] > 0)


def _refit(case: HostileCase) -> list[SoftTreeClassifier]:
    """A tree that has been trained on other rows: if it is refused new ones, it stays as it was."""
    model = deepcopy(_fitted_before())
    model.set_params(**case.parameters)
    try:
        return [model.fit(case.X, case.y, sample_weight=case.sample_weight)]
    except BaseException:
        before, rows = _fitted_before(), np.linspace(-2, 2, 30).reshape(10, 3)
        np.testing.assert_array_equal(model.predict_proba(rows), before.predict_proba(rows))
        np.testing.assert_array_equal(model.classes_, before.classes_)
        assert export_text(model) == export_text(before)
        raise


def _path(case: HostileCase) -> list[SoftTreeClassifier]:
    found = strength_path(
        case.X,
        case.y,
        estimator=SoftTreeClassifier(**case.parameters),
        n_points=2,
        sample_weight=case.sample_weight,
    )
    assert np.all(np.isfinite(found.to_frame().select_dtypes("number").to_numpy()))
    return [point.classifier for point in found.points]


def _choose(case: HostileCase) -> list[SoftTreeClassifier]:
    given = dict(case.parameters)
    depth, scale, penalty = given.pop("depth"), given.pop("scale"), given.pop("penalty")
    local, global_ = given.pop("local_strength"), given.pop("global_strength")
    own = {"steepnesses": [given.pop("steepness")]} if "steepness" in given else {}
    own |= {"ridges": [given.pop("ridge")]} if "ridge" in given else {}
    usual = isinstance(local, str) or isinstance(global_, str) or global_ == 0.1
    known = {
        "depths": "auto" if isinstance(depth, str) else [depth],
        "scales": [scale],
        "penalties": [penalty],
        "strengths": None if usual else [local, 0.1],
        "n_strengths": 2,
        "cv": 2,
    }
    model = SoftTreeClassifierCV(**(known | own | given))
    return [model.fit(case.X, case.y, sample_weight=case.sample_weight).best_estimator_]


CALLS = {"fit": _fit, "refit": _refit, "path": _path, "choose": _choose}


def check_tree(tree: SoftTreeClassifier, case: HostileCase) -> None:
    """Feasible, finite, true to itself, readable, and the same after a round trip."""
    for name in ("weights_", "thresholds_", "leaf_classes_", "coef_", "intercept_"):
        assert np.all(np.isfinite(getattr(tree, name))), f"{name} is not finite"
    assert np.isfinite(tree.objective_) and tree.solution_.violation <= FEASIBLE
    assert np.all(np.isfinite(tree.feature_importances_))
    assert np.all(tree.feature_importances_ >= 0) and tree.feature_importances_.sum() < 1 + 1e-9
    check_feasible(tree, case)
    chances = tree.predict_proba(case.X)
    assert np.all((chances >= 0) & (chances <= 1 + 1e-12)), "probabilities outside [0, 1]"
    np.testing.assert_allclose(chances.sum(axis=1), 1, atol=1e-9)
    np.testing.assert_allclose(tree.leaf_proba(case.X).sum(axis=1), 1, atol=1e-9)
    said = tree.predict(case.X)
    assert np.all(np.isin(said, tree.classes_))
    assert np.all(np.isfinite(tree.predict_log_proba(case.X)))
    check_reading(tree, case, chances)
    if not hasattr(tree, "coding_"):
        check_other_rows(tree)


STRANGE = (0.0, -0.0, 1e300, -1e300, 1.7e308, -1.7e308, 5e-324, 1.0, -1.0)


def check_other_rows(tree: SoftTreeClassifier) -> None:
    """Rows that are nothing like those of training, all of one value or each column another."""
    n = tree.n_features_in_
    rows = np.array([np.full(n, value) for value in STRANGE])
    rows = np.vstack([rows, np.resize(STRANGE, n), np.resize(STRANGE[::-1], n)])
    if hasattr(tree, "feature_names_in_"):
        rows = pd.DataFrame(rows, columns=tree.feature_names_in_)
    chances = tree.predict_proba(rows)
    assert np.all(np.isfinite(chances)) and np.all((chances >= 0) & (chances <= 1 + 1e-12))
    np.testing.assert_allclose(chances.sum(axis=1), 1, atol=1e-9)
    assert np.all(np.isin(tree.predict(rows), tree.classes_))
    for i in (4, 5, 9):
        text = str(tree.explain(rows[i : i + 1]))
        assert not re.search(r"(?<!\w)(inf|nan)(?!\w)", text), text


def check_feasible(tree: SoftTreeClassifier, case: HostileCase) -> None:
    """Simplex and class rates, and for costs box and coverage, from the paper's equations."""
    a, mu, c = tree.weights_, tree.thresholds_, tree.leaf_classes_
    assert np.min(c) >= -FEASIBLE and np.max(np.abs(c.sum(axis=0) - 1)) <= FEASIBLE
    if tree.loss == "cost":
        assert np.max(np.abs(a)) <= 1 and np.max(np.abs(mu)) <= 1, "outside the box"
        assert np.min(c.sum(axis=1)) >= 1 - FEASIBLE, "a class without a leaf"
    rates = class_rates(tree, case)
    wanted = tree.min_class_rate
    if isinstance(wanted, float | list):
        assert np.all(rates >= np.asarray(wanted) - 2 * FEASIBLE), f"rates {rates} for {wanted}"


def class_rates(tree: SoftTreeClassifier, case: HostileCase) -> np.ndarray:
    """Share of each class that is expected to be right, from the equations."""
    scaled = tree.scaling_.transform(checked_rows(tree, case.X))
    weight = np.broadcast_to(
        1.0 if case.sample_weight is None else np.asarray(case.sample_weight, dtype=float),
        len(scaled),
    )
    weight = weight / weight.max()
    y = np.asarray(case.y).ravel()
    left = expit(
        float(tree.tree_.steepness) * (scaled @ tree.weights_ / scaled.shape[1] - tree.thresholds_)
    )
    depth = int(np.log2(tree.leaf_classes_.shape[1]))
    reach = np.ones((2**depth, len(scaled)))
    for leaf in range(2**depth):
        lefts, rights = left_and_right_ancestors(leaf, depth)
        for t in lefts:
            reach[leaf] *= left[:, t]
        for t in rights:
            reach[leaf] *= 1 - left[:, t]
    right = tree.leaf_classes_ @ reach  # (classes, rows)
    rates = []
    for k, label in enumerate(tree.classes_):
        own = (y == label) & (weight > 0)
        rates.append(np.average(right[k, own], weights=weight[own]))
    return np.array(rates)


def check_reading(tree: SoftTreeClassifier, case: HostileCase, chances: np.ndarray) -> None:
    """The tree as its readers meet it: text, explanation, plain splits, file."""
    assert export_text(tree) and export_markdown(tree)
    raw = hasattr(case.X, "columns") or hasattr(tree, "coding_")
    row = case.X[:1] if raw else checked_rows(tree, case.X)[:1]
    explained = tree.explain(row)
    assert str(explained)
    again = loads_model(dumps_model(tree))
    np.testing.assert_array_equal(again.predict_proba(case.X), chances)
    simple = tree.simplify(tol=1e-9)
    np.testing.assert_allclose(simple.predict_proba(case.X), chances, atol=1e-8)
    assert len(tree.to_hard_tree().predict(case.X)) == len(chances)


def table_outcome(case: HostileTable, folder: Path) -> Outcome:
    """Fit, predict and explain from the command line; a sentence on standard error if refused."""
    data, model = folder / "data.csv", folder / "model.json"
    data.write_bytes(case.content)
    model.unlink(missing_ok=True)
    watch = Stopwatch()
    fit = ["fit", data, "--target", case.target, "--model", model, "--quiet", "--jobs", 1]
    limits = [float(v) for o, v in zip(case.options, case.options[1:], strict=False) if "time" in o]
    sentence = command(*fit, *case.options)[1]
    late = watch.beyond(limits[-1])
    assert model.exists() == (not sentence)
    if sentence:
        return Outcome(0, sentence, *late)
    answers, sentence = command("predict", model, data, "--proba", "--quiet")
    assert not sentence, f"a file that was fitted is not predicted: {sentence}"
    table = pd.read_csv(io.StringIO(answers), keep_default_na=False)
    chances = table.iloc[:, 2:].apply(pd.to_numeric)
    np.testing.assert_allclose(chances.sum(axis=1), 1, atol=1e-6 * (1 + chances.shape[1]))
    explained, sentence = command("explain", model, data, "--json", "--quiet")
    assert not sentence and json.loads(explained)
    return Outcome(1, "", *late)


def command(*arguments: object) -> tuple[str, str]:
    """What a command says on standard output, and the sentence it is refused with."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "200"})
    leaked = [w for w in caught if not is_expected(w)]
    assert not leaked, f"a warning leaked: {leaked[0].message} ({leaked[0].filename})"
    assert result.exit_code in (0, 2), f"exit code {result.exit_code}: {result.output}"
    if result.exit_code == 0:
        return result.stdout, ""
    lines = result.stderr.strip().splitlines()
    assert lines and lines[-1].startswith("softsplit: "), result.output
    said = lines[-1].removeprefix("softsplit: ")
    assert is_one_sentence(said), f"not one clear sentence: {said!r}"
    return "", said
