"""The registry of engines, and the hooks of the option package that keeps rows on a device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsplit.engines.base import RowEngine
from softsplit.engines.compiled import CompiledRows
from softsplit.engines.outer import IDENTITY
from softsplit.engines.samples import Samples
from softsplit.support import options
from softsplit.support.arrays import FloatArray
from softsplit.support.hinged_table import HingedTable
from softsplit.support.messages import shown, unfit
from softsplit.support.row_budgets import ROWS
from softsplit.tree.scaling import LinearScaling, Scaling

EngineMaker = Callable[[Samples], RowEngine]

ENGINES: dict[str, EngineMaker] = {"memory": CompiledRows}
"""Engines of the core by name; option packages register further ones."""

PARTS = (
    "n_rows", "n_features", "n_groups", "group_totals", "mean_weight", "group_samples", "evaluate",
    "metric", "sample", "reweighed", "of_group",
)  # fmt: skip
"""Required members of an engine."""


def make_engine(engine: Any, device: Any = None, *, single: bool = False) -> EngineMaker:
    """Return the function that makes an engine of training rows.

    ``engine`` is a name or such a function. With a ``device``, rows are kept there, in ``single``
    or double precision.
    """
    maker: EngineMaker
    if device is not None:
        if not (isinstance(engine, str) and engine == "memory"):
            raise ValueError(
                f"device {shown(device)} and engine {shown(engine)} both say where rows are kept; "
                "give one of them."
            )
        maker = _devices(device).row_maker(device, single)
    elif isinstance(engine, str) and engine in ENGINES:
        maker = ENGINES[engine]
    elif isinstance(engine, str) and engine in options.provided("engines"):
        maker = options.load("engines", engine)
    elif callable(engine):
        maker = engine
    else:
        names = (*ENGINES, *options.provided("engines"))
        raise unfit(
            "engine",
            engine,
            f"must be {' or '.join(map(repr, names))}, or a function that makes an engine "
            "of training rows",
        )
    return maker


def make_samples(
    X: Any,
    y: NDArray[np.int64],
    n_groups: int,
    weight: FloatArray,
    scaling: Scaling,
    *,
    device: Any = None,
    stay_single: bool = False,
    hinged: bool = False,
) -> Samples:
    """Return scaled rows in canonical form; many rows are sorted on the device, if there is one.

    The device returns the same bits. A ``HingedTable`` becomes ``HingedLines`` where the engine
    takes rows that are ``hinged`` and rows may stay in single precision; elsewhere an array.
    """
    if isinstance(X, HingedTable):
        if hinged and stay_single and isinstance(scaling, LinearScaling):
            return Samples.from_hinged(X, y, n_groups, weight, scaling)
        X = np.asarray(X)
    rows = X, y, n_groups, weight
    if device is not None and len(X) > ROWS.sorted_on_device and isinstance(scaling, LinearScaling):
        place: Callable[..., Samples] = _devices(device).make_samples
        return place(*rows, scaling, device=device, stay_single=stay_single)
    return Samples.from_arrays(*rows, scaling.transform, stay_single=stay_single)


def arrived(
    X: Any,
    y: NDArray[np.int64],
    n_groups: int,
    weight: FloatArray,
    kind: str,
    *,
    device: Any,
    counts: FloatArray,
) -> Any:
    """Return many rows on a device, with the scaling fitted and applied there.

    None if the rows are too few, do not fit, or have a ``kind`` of scaling that is not
    fitted on a device.
    """
    if device is None or len(X) <= ROWS.sorted_on_device:
        return None
    return _devices(device).arrived(X, y, n_groups, weight, kind, device=device, counts=counts)


def check_engine(rows: RowEngine, n_branches: int) -> None:
    """Check members of an engine and the shapes of its results before a solver uses it.

    Raises
    ------
    ValueError
        If a member is absent or a result has a wrong shape; the message names it.
    """
    name = type(rows).__name__
    lacking = [part for part in PARTS if not hasattr(rows, part)]
    if lacking:
        raise ValueError(
            f"the engine must be an object with {', '.join(lacking)}; the function gave {name}."
        )
    wide = (rows.n_groups, n_branches + 1)
    shapes = {"value": (), "splits": (n_branches, rows.n_features + 1), "mass": wide, "table": wide}
    sums = rows.evaluate(np.zeros(shapes["splits"]), np.ones(wide), IDENTITY, 1.0)
    for part, shape in shapes.items():
        answer: Any = getattr(sums, part, None)
        if np.shape(answer) != shape or not np.all(np.isfinite(np.asarray(answer, dtype=float))):
            raise ValueError(
                f"evaluate of the engine {name} must return Sums whose {part} is finite and of "
                f"shape {shape}."
            )
    if not all(hasattr(rows.metric(), part) for part in ("inverse", "diagonal")):
        raise ValueError(f"metric of the engine {name} must return a Metric.")


def _devices(device: Any) -> Any:
    """Return the option package that keeps rows on a device."""
    return options.service("devices", f"device {shown(device)}", "leave device at None")
