"""From a table to a tree: settings are chosen by cross-validation, then the tree is trained.

The work stays within bounds whatever the size of the table: settings are compared on a sample of
the rows where there are many, the same rows for the same seed, so that the result can be repeated.
The tree itself is trained on all rows.
"""

from __future__ import annotations

import copy
import time
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from softsplit.data.dataset import sample_rows
from softsplit.data.files import Table
from softsplit.data.learning import LabelledRows, label
from softsplit.estimators.base import CutShortWarning
from softsplit.estimators.classifier import SoftTreeClassifier
from softsplit.estimators.classifier_cv import SoftTreeClassifierCV
from softsplit.fitted.profile import TableProfile
from softsplit.formulations import formulation_of
from softsplit.formulations.rates import named_columns
from softsplit.reading.text import export_text
from softsplit.report.choice_text import describe_choice
from softsplit.report.same_tree import strength_of
from softsplit.selection.strengths import SHARES, price, priced, shares_of
from softsplit.settings.parameter import parameters as table_parameters
from softsplit.settings.table import CLASSIFIER, SEARCH
from softsplit.support.messages import AdvisedError
from softsplit.support.row_budgets import ROWS
from softsplit.training.precompile import load
from softsplit.training.run import NO_QUESTION_YET
from softsplit.variables import IdentifierUsed


@dataclass(frozen=True)
class StudyOptions:
    """How a table is fitted for a report."""

    fewest_rows: int = 500
    """Rows on which settings are compared at least."""

    least_seconds: float = 5.0
    """Seconds that training on all rows gets at least."""

    starts: int = 5
    """Starts of a tree with given settings."""


OPTIONS = StudyOptions()


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
    repeatable : bool
        Whether a fit with the settings of the tree gives the same tree.
    search : SoftTreeClassifierCV, optional
        What has chosen the settings, for alternatives; None if all were given.
    """

    tree: SoftTreeClassifier
    provenance: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    score: float | None
    interrupted: bool
    repeatable: bool
    search: SoftTreeClassifierCV | None = None


def fit_tree(rows: LabelledRows, options: FitOptions | None = None) -> Fitted:
    """Choose what is not given by cross-validation, and train on all rows."""
    options = options or FitOptions()
    # Before the clock runs: on a new installation it takes as long as all the rest. By likelihood
    # the penalty counts.
    load(options.loss, False)
    began = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if options.depth is not None and options.strength is not None:
            tree, provenance, score = _given(rows, options), [("Settings", "as given")], None
            anew, search = True, None
        else:
            tree, provenance, score, anew, search = _chosen(rows, options, began)
    told = (ConvergenceWarning, IdentifierUsed)
    said = [w.message for w in caught if issubclass(w.category, told)]
    cut = [message for message in said if isinstance(message, CutShortWarning)]
    notes = [m.reason if isinstance(m, CutShortWarning) else str(m) for m in said]
    if np.any(tree.weights_):  # another tree of this fit asked none
        notes = [note.replace(NO_QUESTION_YET, "") for note in notes]
    repeatable = anew and tree.end_ == "complete"
    return Fitted(
        tree=tree,
        provenance=(*provenance, *_facts(tree)),
        notes=tuple(dict.fromkeys(notes)),
        score=score,
        interrupted=any(message.interrupted for message in cut),
        repeatable=repeatable,
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
    return _trained(rows, settings, options, options.time_limit)


def _trained(
    rows: LabelledRows, settings: dict[str, Any], options: FitOptions, time_limit: float | None
) -> SoftTreeClassifier:
    given = {**options.among(*CLASSIFIER), **settings}  # a chosen limit of terms counts
    tree = SoftTreeClassifier(**{**given, "n_starts": OPTIONS.starts, "time_limit": time_limit})
    return tree.fit(*rows.part())


def _chosen(
    rows: LabelledRows, options: FitOptions, began: float
) -> tuple[SoftTreeClassifier, list[tuple[str, str]], float | None, bool, SoftTreeClassifierCV]:
    """Return the tree, how it came about, its score, whether it was trained anew, and the search.

    The chosen settings are trained as if they had been given: where they give the tree again, that
    is said. Of a part of the rows the tree on all of them is taken.
    """
    _check_choice(rows.y)
    n_rows, n_features = rows.matrix.shape
    choice = formulation_of(options.loss).choice
    limit = max(OPTIONS.fewest_rows, choice.compared_cells // n_features)
    by_itself = choice.scores_rows and limit >= ROWS.compared
    drawn = sample_rows(rows.y, n_rows if by_itself else limit, options.seed)
    if options.teacher is not None and len(drawn) < n_rows:
        raise ValueError(
            f"a teacher is for tables whose rows are all compared, here up to {limit:,}; leave "
            "teacher out."
        )
    part, compared = len(drawn) / n_rows, min(len(drawn), ROWS.compared if by_itself else n_rows)
    search = SoftTreeClassifierCV(
        depths="auto" if options.depth is None else [options.depth],
        scales="auto" if options.scale is None else [options.scale],
        scopes="auto" if options.scope is None else [options.scope],
        strengths=None if options.strength is None else [part * options.strength],
        ridges="auto" if options.ridge is None else [options.ridge],
        steepnesses="auto" if options.steepness is None else [options.steepness],
        **options.among(*SEARCH),
    )
    search.fit(*rows.part(drawn))
    sample = "" if compared == n_rows else f", on {compared:,} of {n_rows:,} rows drawn for that"
    provenance = [("Settings", describe_choice(search, sample))]
    tree, anew = search.best_estimator_, False
    # A tree with a teacher is kept: its settings alone do not give it again.
    drawn_rows = f"on the {len(drawn):,} rows drawn for the choice"
    interrupted = search.end_ == "interrupted"
    if interrupted and part < 1:  # the user waits: the tree of the choice is there
        tree = copy.copy(tree).set_params(**_strengths(search, options, part))
        provenance.append(("Training", drawn_rows))
    elif search.targets_ is None and (part < 1 or search.end_ == "complete"):
        try:
            whole = _on_all_rows(rows, options, search, part, began)
            if part < 1:
                anew = whole.end_ == "complete" or _fits_better(whole, tree, rows)
            else:  # else the tree of the choice, as Python gives it
                anew = whole.end_ == "complete" and export_text(whole) == export_text(tree)
            kept = copy.copy(tree).set_params(**_strengths(search, options, part))
            tree = whole if anew else kept
            # The held-out rows of the choice were judged by trees with these settings.
            tree.tree_ = replace(tree.tree_, held_out=search.tree_.held_out)
            if part < 1:  # unless it was cut short before it was as good as what is there
                late = f"{drawn_rows}: on all rows time ran out"
                on_all = f"on all {n_rows:,} rows with the chosen settings"
                provenance.append(("Training", on_all if anew else late))
        except KeyboardInterrupt:  # before there was a tree on all rows
            if part < 1:
                provenance.append(("Training", drawn_rows))
            kept = "interrupted; the tree of the choice is kept."
            warnings.warn(CutShortWarning("fit_tree", kept, True), stacklevel=2)
    score = float(search.best_score_)
    return tree, provenance, score if np.isfinite(score) else None, anew, search


def _check_choice(y: NDArray[Any]) -> None:
    labels, counts = np.unique(y, return_counts=True)
    if np.sort(counts)[-2] < 2:
        raise AdvisedError(
            f"only one class of {len(labels)} has more than one row, too few to choose settings by "
            "cross-validation",
            "give depth and strength, or more rows",
            "give them with --depth and --strength, or more rows",
        )


def _on_all_rows(
    rows: LabelledRows, options: FitOptions, search: SoftTreeClassifierCV, part: float, began: float
) -> SoftTreeClassifier:
    """The chosen settings on all rows."""
    settings: dict[str, Any] = {**search.best_params_, **_strengths(search, options, part)}
    limit = options.time_limit
    if limit is not None:
        limit = max(limit - (time.perf_counter() - began), OPTIONS.least_seconds)
    return _trained(rows, settings, options, limit)


def _strengths(search: SoftTreeClassifierCV, options: FitOptions, part: float) -> dict[str, float]:
    """The chosen strengths for all rows, of which ``part`` were compared; named ones grow as the
    rows do."""
    growth = formulation_of(options.loss).strength_growth if options.strength is None else 1.0
    names = ("local_strength", "global_strength")
    chosen = [search.best_params_[name] for name in names]
    grown = priced(shares_of(*chosen), price(*chosen) / part**growth)
    return dict(zip(names, grown if part < 1 else chosen, strict=True))


def _fits_better(tree: SoftTreeClassifier, other: SoftTreeClassifier, rows: LabelledRows) -> bool:
    """Whether the classes of all rows are more probable by the first tree than by the second."""
    labels = np.searchsorted(tree.classes_, rows.y)
    coded = (rows.coded_as(t.tree_.coding).matrix for t in (tree, other))
    own, its = (
        np.log(t.tree_.predict_proba(X)[np.arange(len(labels)), labels] + 1e-15).mean()
        for t, X in zip((tree, other), coded, strict=True)
    )
    return bool(own >= its)


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
