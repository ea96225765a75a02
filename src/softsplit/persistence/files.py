"""Model files as text and on disk, and the types that a skops file of a tree holds."""

from __future__ import annotations

import json
import os
from typing import Any

from softsplit.persistence.document import from_document, to_document
from softsplit.persistence.records import ModelFileError, parse
from softsplit.persistence.saved import SavedTree
from softsplit.support.messages import PACKAGES
from softsplit.support.output_files import write_file

# Larger files are refused before they are parsed, unless the caller allows more.
MAX_BYTES = 64 * 2**20


def dumps_model(estimator: Any, *, max_bytes: int = MAX_BYTES) -> str:
    """A fitted tree as the text of a model file; what the reader would refuse is not written.

    Parameters
    ----------
    estimator : fitted SoftTreeClassifier, or a search that holds one as ``best_estimator_``
    max_bytes : int
        Longer text is refused, since it is not read without being asked for either.

    Raises
    ------
    ModelFileError
        In one sentence, if ``loads_model`` would refuse the text.
    """
    from softsplit.persistence.estimators import estimator_in

    if hasattr(estimator, "to_local"):  # of Dask
        estimator = estimator.to_local()
    document = to_document(estimator_in(estimator))
    try:
        from_document(document)
        text = _rendered(document) + "\n"
    except ModelFileError as error:
        raise ModelFileError(f"the tree cannot be saved: {error}") from None
    size = len(text.encode("utf-8"))
    if size > max_bytes:
        raise ModelFileError(
            f"the tree cannot be saved: its file would have {size} bytes, more than {max_bytes}; "
            "raise max_bytes here, and again where it is loaded."
        )
    return text


def _rendered(value: Any, indent: str = "") -> str:
    """JSON with one entry per line, except lists of plain values, which stay on one."""
    nested = (dict, list, tuple)
    if isinstance(value, dict) and value:
        inner = [f"{_flat(name)}: {_rendered(v, indent + '  ')}" for name, v in value.items()]
        opening, closing = "{", "}"
    elif isinstance(value, list | tuple) and any(isinstance(v, nested) for v in value):
        inner = [_rendered(v, indent + "  ") for v in value]
        opening, closing = "[", "]"
    else:
        return _flat(value)
    body = f",\n{indent}  ".join(inner)
    return f"{opening}\n{indent}  {body}\n{indent}{closing}"


def _flat(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except ValueError:  # Python writes no integer of more than 4,300 digits
        raise ModelFileError("one of its parameters is a very long integer.") from None


def loads_model(content: str | bytes, *, max_bytes: int = MAX_BYTES) -> Any:
    """The fitted tree in the text of a model file; nothing in it is run.

    The tree predicts the same bits as the one that was saved. It knows no training runs: there is
    no ``solution_`` and no ``starts_``.

    Parameters
    ----------
    content : str or bytes in UTF-8
    max_bytes : int
        Longer content is refused before it is parsed.
    """
    saved = loads_tree(content, max_bytes=max_bytes)
    try:
        from softsplit.persistence.estimators import classifier_of
    except ModuleNotFoundError as error:
        module = (error.name or "a package").partition(".")[0]
        raise ImportError(
            "load_model returns a scikit-learn estimator, and "
            f"{PACKAGES.get(module, module)} is not installed; "
            "install it, or use softsplit.load_tree, which predicts and exports without it."
        ) from error
    return classifier_of(saved.tree_, named=saved.named, parameters=saved.parameters)


def loads_tree(content: str | bytes, *, max_bytes: int = MAX_BYTES) -> SavedTree:
    """The same without an estimator around it: neither scikit-learn nor numba is needed."""
    if isinstance(content, bytearray | memoryview):
        content = bytes(content)
    if not isinstance(content, str | bytes):
        raise TypeError(
            f"the text of a model file is needed, as str or bytes, got {type(content).__name__}."
        )
    if len(content) > max_bytes:
        raise ModelFileError(
            f"the model file is larger than {max_bytes} bytes; if you trust it, raise max_bytes."
        )
    if isinstance(content, bytes):
        try:
            content = content.decode("utf-8")
        except UnicodeDecodeError:
            raise ModelFileError("the model file is not text in UTF-8.") from None
    return from_document(parse(content))


def save_model(estimator: Any, path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> None:
    """Write a fitted tree to a model file, which is replaced as a whole or not at all.

    A link is followed; a file that was there keeps its permissions, a new one gets those of the
    umask; a pipe or a device is written into. What is written can be read: see ``dumps_model``.
    """
    write_file(path, dumps_model(estimator, max_bytes=max_bytes).encode("utf-8"))


def load_model(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> Any:
    """Read a model file: see ``loads_model``."""
    return loads_model(_content(path, max_bytes), max_bytes=max_bytes)


def load_tree(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> SavedTree:
    """Read a model file to predict, explain and export: neither scikit-learn nor numba is needed.

    Answers are those of ``load_model``, to the bit; nothing in the file is run.

    Parameters
    ----------
    path : path of the model file
    max_bytes : int
        Larger files are refused before they are parsed.

    Returns
    -------
    SavedTree
        With ``predict``, ``predict_proba``, ``predict_set``, ``explain`` and ``classes_``; the
        functions that print and export a tree take it too.
    """
    return loads_tree(_content(path, max_bytes), max_bytes=max_bytes)


def _content(path: str | os.PathLike[str], max_bytes: int) -> bytes:
    with open(path, "rb") as file:
        return file.read(max_bytes + 1)


# --- skops ---------------------------------------------------------------------------------------


# Types to name as ``trusted`` when a tree is loaded with skops: all hold arrays and no more.
SKOPS_TYPES: tuple[str, ...] = (
    "softsplit.estimators.classifier.SoftTreeClassifier",
    "softsplit.estimators.classifier_cv.SoftTreeClassifierCV",
    "softsplit.estimators.edited.EditedTree",
    "softsplit.estimators.regressor.SoftTreeRegressor",
    "softsplit.estimators.regressor.SoftTreeRegressorCV",
    "softsplit.estimators.survival.SoftTreeSurvival",
    "softsplit.estimators.survival.SoftTreeSurvivalCV",
    "softsplit.formulations.rates.EqualOpportunity",
    "softsplit.formulations.rates.EqualizedOdds",
    "softsplit.formulations.rates.Parity",
    "softsplit.formulations.rates.RateConstraint",
    "softsplit.problem.optimality.KKT",
    "softsplit.fitted.baseline.Baseline",
    "softsplit.fitted.conformal.HeldOutScores",
    "softsplit.fitted.edits.Edit",
    "softsplit.fitted.edits.Edits",
    "softsplit.fitted.leaf_numbers.LeafNumbers",
    "softsplit.fitted.model.TreeModel",
    "softsplit.fitted.rates.RateRecord",
    "softsplit.fitted.profile.ColumnProfile",
    "softsplit.fitted.profile.TableProfile",
    "softsplit.fitted.summary.FeatureSummary",
    "softsplit.fitted.walk.Walk",
    "softsplit.solvers.base.Screening",
    "softsplit.solvers.base.Solution",
    "softsplit.solvers.stopping.SearchSummary",
    "softsplit.tree.leaf_families.Absolute",
    "softsplit.tree.leaf_families.Gamma",
    "softsplit.tree.leaf_families.Huber",
    "softsplit.tree.leaf_families.Poisson",
    "softsplit.tree.leaf_families.Quantile",
    "softsplit.tree.leaf_families.Squared",
    "softsplit.tree.leaf_families.Survival",
    "softsplit.tree.leaf_families.Tweedie",
    "softsplit.tree.leaf_functions.LeafFunctions",
    "softsplit.tree.parameters.TreeParameters",
    "softsplit.tree.scaling.LinearScaling",
    "softsplit.tree.scaling.QuantileScaling",
    "softsplit.variables.coding.Coding",
    "softsplit.variables.lookup.Lookup",
    "softsplit.variables.variable.Variable",
)
