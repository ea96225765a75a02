"""From a table to a tree: settings are chosen by cross-validation, then the tree is trained.

Settings are compared on a sample of the rows where there are many, and the tree is trained on all
rows (``SoftTreeClassifierCV``).
"""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from softsplit.data.files import Table
from softsplit.data.learning import LabelledRows, label
from softsplit.estimators.base import CutShortWarning
from softsplit.estimators.classifier import SoftTreeClassifier
from softsplit.estimators.classifier_cv import SoftTreeClassifierCV
from softsplit.fitted.profile import TableProfile
from softsplit.formulations import formulation_of
from softsplit.formulations.rates import named_columns
from softsplit.report.choice_text import describe_choice
from softsplit.report.same_tree import strength_of
from softsplit.selection.strengths import SHARES, price
from softsplit.settings.parameter import parameters as table_parameters
from softsplit.settings.table import CLASSIFIER, SEARCH
from softsplit.support.messages import AdvisedError
from softsplit.training.precompile import load
from softsplit.training.run import NO_QUESTION_YET
from softsplit.variables import IdentifierUsed

STARTS = 5
"""Starts of a tree with given settings."""


class FitOptions:
    """What is given for a fit; what is left out is chosen.

    Parameters
    ----------
    depth : int, optional
    strength : float, optional
        What a feature costs (with the scope "local": a coefficient), as ``global_strength``. With
        both depth and strength nothing is chosen.
    ridge, steepness, scale : optional
        As in ``SoftTreeClassifier``.
    scope : {"size", "global", "local", "both"}, optional
        What is penalised: coefficients and features as in the size of a tree, features, single
        coefficients, or half and half. "size" if not given, and "global" with loss "cost".
    seed : int
    **parameters
        Others of ``SoftTreeClassifier`` and ``SoftTreeClassifierCV``.
    """

    def __init__(
        self,
        depth: int | None = None,
        strength: float | None = None,
        *,
        ridge: float | None = None,
        steepness: float | None = None,
        scale: str | None = None,
        scope: str | None = None,
        seed: int = 0,
        **parameters: Any,
    ) -> None:
        self.depth, self.strength, self.scope = depth, strength, scope
        self.ridge, self.steepness, self.scale = ridge, steepness, scale
        self.parameters = {"random_state": seed, **parameters}
        self.loss = parameters.get("loss", "log")
        self.teacher = parameters.get("teacher")
        self.time_limit = parameters.get("time_limit")
        self.verbose = bool(parameters.get("verbose"))
        self.seed, self.n_jobs = self.parameters["random_state"], parameters.get("n_jobs")

    def among(self, *tables: type) -> dict[str, Any]:
        """Return the parameters that one of the estimators has."""
        names = {parameter.name for parameter in table_parameters(*tables)}
        return {name: value for name, value in self.parameters.items() if name in names}

    @property
    def softness(self) -> dict[str, float]:
        """Ridge and steepness as far as they are given."""
        given = {"ridge": self.ridge, "steepness": self.steepness}
        return {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True)
class Fitted:
    """A tree, and how it came about.

    Attributes
    ----------
    tree : SoftTreeClassifier
        It knows the table that it is for.
    provenance : tuple of (str, str)
        How the tree was fitted, for people: what, and how.
    notes : tuple of str
        What kept the fit from ending by itself, as sentences.
    score : float, optional
        Cross-validated accuracy of the chosen settings; None if nothing was compared.
    interrupted : bool
        Whether Ctrl-C ended it; the tree is the best so far.
    search : SoftTreeClassifierCV, optional
        What has chosen the settings, for alternatives; None if all were given.
    """

    tree: SoftTreeClassifier
    provenance: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    score: float | None
    interrupted: bool
    search: SoftTreeClassifierCV | None = None


def fit_tree(rows: LabelledRows, options: FitOptions | None = None) -> Fitted:
    """Choose what is not given by cross-validation, and train on all rows."""
    options = options or FitOptions()
    # Before the clock runs: on a new installation it takes as long as all the rest. By likelihood
    # the penalty counts.
    load(options.loss, False)
    search, score = None, None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if options.depth is not None and options.strength is not None:
            tree, provenance = _given(rows, options), [("Settings", "as given")]
        else:
            search, provenance = _chosen(rows, options)
            names = ("local_strength", "global_strength")
            strengths = {name: search.best_params_[name] for name in names}
            tree = copy.copy(search.best_estimator_).set_params(**strengths)
            score = float(search.best_score_) if np.isfinite(search.best_score_) else None
    told = (ConvergenceWarning, IdentifierUsed)
    said = [w.message for w in caught if issubclass(w.category, told)]
    cut = [message for message in said if isinstance(message, CutShortWarning)]
    notes = [m.reason if isinstance(m, CutShortWarning) else str(m) for m in said]
    if np.any(tree.weights_):  # another tree of this fit asked none
        notes = [note.replace(NO_QUESTION_YET, "") for note in notes]
    return Fitted(
        tree=tree,
        provenance=(*provenance, *_facts(tree)),
        notes=tuple(dict.fromkeys(notes)),
        score=score,
        interrupted=any(message.interrupted for message in cut),
        search=search,
    )


PROFILE_EDGES = 3
"""A column with fewer edges in the profile has too few values to tell tables apart."""


def rows_of(
    tree: SoftTreeClassifier,
    table: Table,
    target: str | None = None,
    *,
    every_class: bool = True,
) -> LabelledRows:
    """Rows of the table that a tree was fitted to, coded as they were then.

    Parameters
    ----------
    tree : SoftTreeClassifier
    table : Table
        With the target, and rows of every class if ``every_class``.
    target : str, optional
        The column with the classes; needed if the tree does not know what it is called.
    """
    target = target or tree.tree_.target
    if target is None:
        raise AdvisedError(
            "the tree does not know the column of its classes",
            "name the target",
            "name it with --target",
        )
    coding = replace(tree.tree_.table_coding, named=hasattr(tree, "feature_names_in_"))
    apart = [str(name) for name in named_columns(tree.constraints, tree.fairness)]
    rows = label(table, coding, tree.classes_, target, apart)
    lost = sorted(set(map(str, tree.classes_)) - set(map(str, rows.y)))
    if lost and every_class:
        raise ValueError(f"no row is of class {lost[0]!r}; the report needs rows of every class.")
    return rows


def check_training_rows(tree: SoftTreeClassifier, rows: LabelledRows, name: str) -> None:
    """Raise ValueError if ``rows`` are not those that the tree was fitted to.

    A report trains along the strength path and judges these trees by folds of the rows: of other
    rows it would say nothing about the tree. Training rows have the class counts of the tree's
    profile; weights that are whole numbers change these, and the table then still has the values
    that stand in the profile.
    """
    profile = tree.tree_.profile
    if profile is None or np.any(profile.classes != np.rint(profile.classes)):
        return
    here = np.array([np.sum(rows.y == label) for label in tree.classes_], dtype=float)
    if np.array_equal(here, profile.classes) or _has_values_of(profile, rows):
        return
    k = int(np.argmax(np.abs(here - profile.classes)))
    raise AdvisedError(
        f"{name} is not the table that the tree was fitted to: it has {int(here.sum()):,} rows, "
        f"{int(here[k]):,} of class {str(tree.classes_[k])!r}, where the tree was fitted to "
        f"{int(profile.rows):,}, {int(profile.classes[k]):,} of that class",
        "give that table, and these rows as held_out=(X, y), or judge the tree on them with "
        "softsplit.check_rows",
        "give that table, and these rows with --held-out, or judge the tree on them with softsplit "
        "check",
    )


def _has_values_of(profile: TableProfile, rows: LabelledRows) -> bool:
    """Whether all edges of a profile, values of training rows, are among those of ``rows``."""
    edges = [
        (column.edges, cells.numbers)
        for column, cells in zip(profile.columns, rows.rows.cells, strict=True)
        if column is not None and column.edges is not None
    ]
    tells = any(len(own) >= PROFILE_EDGES for own, _ in edges)
    return tells and all(bool(np.all(np.isin(own, values))) for own, values in edges)


def _given(rows: LabelledRows, options: FitOptions) -> SoftTreeClassifier:
    assert options.depth is not None and options.strength is not None
    formulation = formulation_of(options.loss)
    usual = formulation.defaults
    scope = options.scope or formulation.choice.axes["scopes"][0]
    shares = SHARES[scope]
    local, global_ = (part / price(*shares) * options.strength for part in shares)
    settings = {
        "depth": options.depth,
        "scale": options.scale or usual["scale"],
        "penalty": usual["penalty"],
        "local_strength": local,
        "global_strength": global_,
        **options.softness,
    }
    given = {**options.among(*CLASSIFIER), **settings, "n_starts": STARTS}
    return SoftTreeClassifier(**given).fit(*rows.part())


def _chosen(
    rows: LabelledRows, options: FitOptions
) -> tuple[SoftTreeClassifierCV, list[tuple[str, str]]]:
    """Return the fitted search, and how its tree came about."""
    _check_choice(rows.y)
    search = SoftTreeClassifierCV(
        depths="auto" if options.depth is None else [options.depth],
        scales="auto" if options.scale is None else [options.scale],
        scopes="auto" if options.scope is None else [options.scope],
        strengths=None if options.strength is None else [options.strength],
        ridges="auto" if options.ridge is None else [options.ridge],
        steepnesses="auto" if options.steepness is None else [options.steepness],
        **options.among(*SEARCH),
    )
    search.fit(*rows.part())
    n_rows, compared = len(rows.y), search.n_compared_
    if compared == n_rows:
        return search, [("Settings", describe_choice(search))]
    drawn = f"on the {compared:,} rows drawn for the choice"
    whole = f"on all {n_rows:,} rows with the chosen settings"
    sample = f", on {compared:,} of {n_rows:,} rows drawn for that"
    trained = drawn if search.end_ == "interrupted" else whole
    return search, [("Settings", describe_choice(search, sample)), ("Training", trained)]


def _check_choice(y: NDArray[Any]) -> None:
    labels, counts = np.unique(y, return_counts=True)
    if np.sort(counts)[-2] < 2:
        raise AdvisedError(
            f"only one class of {len(labels)} has more than one row, too few to choose settings by "
            "cross-validation",
            "give depth and strength, or more rows",
            "give them with --depth and --strength, or more rows",
        )


def _facts(tree: SoftTreeClassifier) -> list[tuple[str, str]]:
    steepness = formulation_of(tree.loss).label(tree.tree_.steepness, tree.ridge)
    search = tree.solution_.search
    depth = f"{tree.tree_.topology.depth}"
    if isinstance(tree.depth, int) and tree.depth != tree.tree_.topology.depth:
        depth += f" of {tree.depth} allowed"
    return [
        (
            "Tree",
            f"loss {tree.loss}, depth {depth}, scaling {tree.scale}, "
            f"{steepness}, penalty {tree.penalty}, strength {strength_of(tree):.4g}",
        ),
        *([] if search is None else [("Search", str(search))]),
    ]
