"""How training reads rows: checked once, coded where they are more than numbers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, column_or_1d, validate_data

from softsplit.estimators.exposures import Exposures
from softsplit.estimators.number_model import TargetTable, counted_rows
from softsplit.estimators.sensitive import find_column
from softsplit.formulations import formulation_of
from softsplit.formulations import settings as parse
from softsplit.formulations.feature_rules import PARAMETERS as RULES
from softsplit.formulations.feature_rules import check_values, make_rules
from softsplit.formulations.rates import RatedTable, as_requirements, rated_rows
from softsplit.problem.feature_rules import FeatureRules
from softsplit.settings.checks import is_auto, knot_count
from softsplit.solvers import Solver
from softsplit.support.arrays import FloatArray
from softsplit.support.hinged_table import HingedTable
from softsplit.support.inputs import (
    checked_sparse,
    checked_table,
    device_of,
    has_missing,
    holds_numbers,
    is_plain_tensor,
    is_wide,
    made_floats,
    number_targets,
    on_host,
    refuse_lengths,
    refuse_masked,
    refuse_weights,
)
from softsplit.support.labels import (
    counted_labels,
    distinct_labels,
    refuse_continuous,
    refuse_missing_labels,
    refuse_mixed_labels,
    refuse_one_class,
)
from softsplit.training.rows import Rows, TensorRows, TrainingRows
from softsplit.training.wide import WideRows
from softsplit.tree.leaf_families import LeafFamily
from softsplit.variables import (
    CodedRows,
    Coding,
    Shared,
    bent_matrix,
    column_groups,
    learn,
    monotone_effects,
)
from softsplit.variables.columns import column_costs
from softsplit.variables.curves import median


def checked_weights(sample_weight: Any, rows: Any) -> FloatArray:
    """Return a weight for each of ``rows``, 1 where ``sample_weight`` is None."""
    numbers = parse.make_numbers("sample_weight", sample_weight)
    refuse_weights(numbers, rows.shape[0] if hasattr(rows, "shape") else len(rows))
    return parse.make_weights(_check_sample_weight(numbers, rows, dtype=np.float64))


def training_rows(
    estimator: Any, X: Any, y: Any, sample_weight: Any, sensitive: Any = None
) -> Rows:
    """Validate X, y and weights, set ``n_features_in_`` and names, and return the rows.

    Plain numbers are used as they are; any other table is coded (``softsplit.variables``). Wide
    sparse matrices stay sparse (``training/wide.py``). ``sensitive`` holds columns that
    requirements on rates name and that are no features.
    """
    required = as_requirements(estimator.constraints, estimator.fairness)
    # 1. The table, its numbers where it needs no coding, and the labels.
    y, sample_weight = on_host(y), on_host(sample_weight)
    target = getattr(y, "name", None)
    refuse_masked("y", y)
    refuse_missing_labels(y, target)
    table, matrix, y = _checked(estimator, X, y)
    refuse_mixed_labels(y)
    if not counted_labels(y):  # integers are always classes
        refuse_continuous(y)
        check_classification_targets(y)
    # 2. Weights and classes.
    weight = checked_weights(sample_weight, table if matrix is None else matrix)
    classes, labels = distinct_labels(y, weight)
    refuse_one_class(classes)
    # 3. The columns of the problem: those of the matrix, or what the table is coded as.
    for former in ("coding_", "screening_"):
        vars(estimator).pop(former, None)
    n_knots = knots_wanted(estimator, weight, estimator.n_features_in_)
    coded = _coded(estimator, table, matrix, (labels, classes, weight), n_knots)
    names = getattr(estimator, "feature_names_in_", None)
    coding: Coding | None = None
    shared: tuple[Shared, ...] = ()
    if coded is not None:
        matrix, coding, shared = coded.X, coded.coding, coded.shared
        names = np.array(coding.column_names, dtype=object)
        estimator.coding_ = coding
    assert matrix is not None
    columns = [f"x{j}" for j in range(matrix.shape[1])] if coding is None else coding.names
    if coding is None and names is not None:
        columns = names.tolist()
    # 4. What must hold: rates of rows, rules about columns.
    rated, rules = None, feature_rules(estimator, coding, columns)
    for given, named in ((required, "constraints and fairness"), (rules, ", ".join(RULES))):
        if given and issparse(matrix):
            raise ValueError(
                f"{named} are for tables that are not wide and sparse; make X dense, or leave them "
                "out."
            )
    if required:
        column = find_column(on_host(table), sensitive, len(labels))
        wanted = 0.0 if is_auto(estimator.min_class_rate) else estimator.min_class_rate
        rated = rated_rows(
            required, RatedTable(labels, classes, weight, column), parse.make_rates(wanted, classes)
        )
    if rules is not None:
        own = np.flatnonzero(np.isin(rules.of, rules.required))
        some = np.asarray(on_host(matrix[:, own]))[weight > 0]
        ends = np.zeros((2, len(rules.of)))
        ends[:, own] = some.min(axis=0), some.max(axis=0)
        check_values(rules, *ends)
    here = isinstance(matrix, np.ndarray | HingedTable)
    make: Callable[..., Rows] = Rows if here else TensorRows.of
    return (WideRows if issparse(matrix) else make)(
        X=matrix,
        labels=labels,
        weight=weight,
        classes=classes,
        names=names,
        weighted=sample_weight is not None,
        coding=coding,
        target=target if isinstance(target, str) and target else None,
        groups=column_groups(coding, columns, estimator.groups),
        shared=shared,
        bends=n_knots > 0 and here,
        rules=rules,
        monotone=monotone_effects(estimator.monotone, coding, columns, classes),
        rated=rated,
    )


MANY_ROWS = 1000
"""From so many rows on numbers have three knots in a tree for numbers, and below one."""


def target_rows(
    estimator: Any, X: Any, y: Any, sample_weight: Any, exposure: Any, family: LeafFamily
) -> TargetTable:
    """Validate X, y, weights and exposure of a tree of numbers, as ``training_rows`` does.

    Levels of a category that has too many for columns of their own are coded by how often the
    target is above its median.
    """
    # 1. The table and the targets.
    X, y, sample_weight = on_host(X), on_host(y), on_host(sample_weight)
    target = getattr(y, "name", None)
    refuse_masked("y", y)
    refuse_missing_labels(y, target)
    if is_wide(X) and X.shape[0] * X.shape[1] > MOST_CELLS:
        raise ValueError(
            f"X is sparse with {X.shape[0]} rows and {X.shape[1]} columns, too many to make it "
            "dense; trees that predict numbers are trained on dense tables."
        )
    table, matrix, y = _checked(estimator, X.toarray() if is_wide(X) else X, y)
    weight = checked_weights(sample_weight, table if matrix is None else matrix)
    exposures = Exposures.of(exposure, len(weight))
    if exposures.values is not None and not family.log_link:
        raise ValueError(
            "exposure is for the losses 'poisson', 'gamma' and 'tweedie'; choose one, or leave "
            "exposure out."
        )
    values = number_targets(y, weight, exposures.values)
    family.check(values[weight > 0])
    # 2. The columns of the problem.
    vars(estimator).pop("coding_", None)
    rates = values if exposures.values is None else values / exposures.values
    middle = median(rates, weight)
    sides = np.array([f"at most {middle:.4g}", f"above {middle:.4g}"])
    knots = knot_count("curves", estimator.curves)
    if knots is None:
        knots = 3 if counted_rows(weight) >= MANY_ROWS else 1
    labels = (rates > middle).astype(np.int64)
    coded = _coded(estimator, table, matrix, (labels, sides, weight), knots)
    names = getattr(estimator, "feature_names_in_", None)
    coding = None if coded is None else coded.coding
    if coded is not None and coding is not None:
        matrix, estimator.coding_ = coded.X, coding
    assert matrix is not None
    columns = [f"x{j}" for j in range(matrix.shape[1])] if names is None else names.tolist()
    columns = columns if coding is None else list(coding.names)
    # 3. What is asked of the columns.
    groups = column_groups(coding, columns, estimator.groups)
    groups = np.arange(matrix.shape[1]) if groups is None else groups
    prices = costs = None
    if estimator.feature_costs is not None:
        costs = column_costs(estimator.feature_costs, columns)
        places = np.arange(len(groups))
        if coding is not None:
            places = np.array(coding.places, dtype=np.intp)[coding.homes]
        prices = np.zeros(int(groups.max()) + 1)
        np.maximum.at(prices, groups, costs[places])
    ends = np.array(["lower", "higher"])
    return TargetTable(
        X=matrix,
        y=values,
        weight=weight,
        names=tuple(columns if coding is None else coding.column_names),
        named=names is not None,
        groups=groups,
        coding=coding,
        target=target if isinstance(target, str) and target else None,
        prices=prices,
        costs=costs,
        monotone=monotone_effects(estimator.monotone, coding, columns, ends),
        exposure=exposures.values,
        per=exposures.name,
    )


def _coded(
    estimator: Any,
    table: Any,
    matrix: FloatArray | None,
    known: tuple[NDArray[np.int64], NDArray[Any], FloatArray],
    n_knots: int,
) -> CodedRows | None:
    """Return the coded rows of a table, or of numbers that bend; None for numbers as they are.

    ``known`` are labels, classes and weights.
    """
    labels, classes, weight = known
    if matrix is not None:
        names = getattr(estimator, "feature_names_in_", None)
        return _bent(estimator, matrix, names, n_knots, weight)
    coded: CodedRows = table
    if not isinstance(table, CodedRows):
        coded = learn(table, labels, classes, weight, estimator.feature_types)
    elif coded.coding.pointed:  # as another tree takes them
        coded = coded.coded_as(None)
    if not n_knots or not coded.coding.bends:  # rows that bend already keep their knots
        coded = coded.bent(n_knots, weight)
    if any(one.n[1] != len(classes) for one in coded.shared):  # of a part without all classes
        return replace(coded, shared=())
    if coded.shared and isinstance(table, CodedRows):
        # They were coded before, with shares that include each row's own class.
        return replace(coded, X=_held_out(coded.X, coded.shared, labels, weight))
    return coded


def feature_rules(
    estimator: Any, coding: Coding | None, columns: Sequence[str]
) -> FeatureRules | None:
    """Return the rules about the ``columns`` of a table that an estimator was given."""
    return make_rules(coding, columns, **{name: getattr(estimator, name) for name in RULES})


def taught_rows(rows: TrainingRows, targets: Any) -> Rows:
    """Return rows with class probabilities (n_samples, n_classes) as targets, checked."""
    if type(rows) is not Rows:
        raise ValueError(
            "targets is for rows in memory that are not sparse; leave it out: labels are trained "
            "on here."
        )
    return rows.taught(parse.make_targets("targets", targets, rows.classes, rows.weight))


def knots_wanted(estimator: Any, weight: FloatArray, n_columns: int) -> int:
    """Return the number of knots of each number: that of ``curves``, or the default one.

    By default numbers bend under a solver that eliminates coefficients, and not where features are
    ranked by the quantile scaling.
    """
    given = knot_count("curves", estimator.curves)
    scales = getattr(estimator, "scales", getattr(estimator, "scale", None))
    ranked = "quantile" in (scales if isinstance(scales, Collection) else [scales])
    if given and ranked:
        raise ValueError(
            f"curves={given} bends features in their own units, and the scaling 'quantile' takes "
            "their ranks; leave one of them out."
        )
    if given is not None:
        return given
    counts = estimator.solver.eliminates if isinstance(estimator.solver, Solver) else None
    if ranked or not (estimator.solver == "native" if counts is None else counts):
        return 0
    rows = weight.sum() / min(1.0, float(weight[weight > 0].mean()))
    return formulation_of(estimator.loss).n_knots(float(rows), n_columns)


def _bent(
    estimator: Any, matrix: Any, names: NDArray[Any] | None, n_knots: int, weight: FloatArray
) -> CodedRows | None:
    """Return plain numbers with their hinges; None if there are none, as in rows kept elsewhere."""
    if n_knots and isinstance(matrix, np.ndarray):
        return bent_matrix(matrix, None if names is None else names.tolist(), n_knots, weight)
    if n_knots and not is_auto(estimator.curves):
        raise ValueError(
            "curves is for rows in memory that are not sparse; leave it at 'auto': effects are "
            "straight here."
        )
    return None


def _held_out(
    X: Any, shared: tuple[Shared, ...], labels: NDArray[np.int64], weight: FloatArray
) -> Any:
    """Return coded rows in which class shares of a row are learned without that row."""
    if isinstance(X, HingedTable):
        among = tuple(replace(one, first=int(X.homes[one.first])) for one in shared)
        return replace(X, values=_held_out(X.values, among, labels, weight))
    X, counted = X.copy(), weight > 0
    for one in shared:
        X[counted, one.columns] = one.held_out(labels, weight)[counted]
    return X


def _checked(estimator: Any, X: Any, y: Any) -> tuple[Any, FloatArray | None, NDArray[Any]]:
    """Return the table, its numbers if it needs no coding (else None), and the labels."""
    # 1. Rows that were coded before.
    if isinstance(X, CodedRows):
        estimator.n_features_in_ = len(X.coding.names)
        vars(estimator).pop("feature_names_in_", None)
        if X.coding.named:
            estimator.feature_names_in_ = np.array(X.coding.names, dtype=object)
        y = column_or_1d(y)
        refuse_lengths(X.X, y)
        return X, None, y
    # 2. Tensors that stay on their device, and wide sparse matrices that stay sparse.
    if estimator.feature_types is None and _stays_there(estimator, X):
        labels = validate_data(estimator, y=y)
        validate_data(estimator, X, skip_check_array=True)
        refuse_lengths(X, labels)
        return X, X, labels
    X = checked_table(X)
    refuse_lengths(X, y)
    if is_wide(X) and _stays_sparse(estimator, X):
        given = {"accept_sparse": True, "dtype": None, "ensure_all_finite": False}
        matrix, labels = validate_data(estimator, X, y, **given)
        return X, checked_sparse(matrix), labels
    # 3. Plain numbers without missing values; all else is a table to be coded.
    X = X.toarray() if issparse(X) else X
    if estimator.feature_types is None and holds_numbers(X):
        with made_floats():
            # Single precision stays as it is: training makes the only copy in double precision,
            # of the scaled rows.
            matrix, labels = validate_data(
                estimator, X, y, dtype=[np.float64, np.float32], order="C", ensure_all_finite=False
            )
        missing = has_missing(matrix, getattr(estimator, "feature_names_in_", None))
        return X, None if missing else matrix, labels
    if hasattr(X, "shape") and 0 in X.shape:
        raise ValueError(f"X has {X.shape[0]} rows and {X.shape[1]} columns; a table is needed.")
    labels = validate_data(estimator, y=y)
    validate_data(estimator, X, skip_check_array=True)
    return X, None, labels


# Cells of a sparse matrix that are made dense where there is no other way: two gigabytes.
MOST_CELLS = 250_000_000


def _stays_sparse(estimator: Any, X: Any) -> bool:
    """Whether a wide sparse matrix stays sparse; raises if it would have to be dense and is too
    large."""
    plain = estimator.feature_types is None
    if plain and formulation_of(estimator.loss).trains_sparse:
        return True
    if X.shape[0] * X.shape[1] > MOST_CELLS:
        cause = (
            "loss='log' trains"
            if plain
            else "columns that feature_types names nothing of are trained"
        )
        raise ValueError(
            f"X is sparse with {X.shape[0]} rows and {X.shape[1]} columns, too many to make it "
            f"dense; {cause} on it as it is."
        )
    return False


def _stays_there(estimator: Any, X: Any) -> bool:
    """Whether X is a tensor on a device, or for one, that need not be copied to this process."""
    wanted = getattr(estimator, "device", None) is not None or device_of(X) is not None
    return wanted and is_plain_tensor(X)
