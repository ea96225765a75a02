"""What the core calls to keep rows on a device (the service "devices" of ``support/options.py``).

PyTorch is loaded after the name of the device has been checked.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsplit.engines.base import RowEngine
from softsplit.engines.samples import Samples
from softsplit.on_torch.backend import find_device
from softsplit.support.arrays import FloatArray
from softsplit.tree.scaling import LinearScaling


def row_maker(device: Any, single: bool) -> Callable[[Samples], RowEngine]:
    """The function that brings samples to a device, in single or in double precision."""
    target = find_device(device)
    from softsplit.on_torch.rows import DeviceRows

    return partial(DeviceRows.of, device=target, single=single)


def make_samples(
    X: NDArray[np.floating],
    y: NDArray[np.int64],
    n_groups: int,
    weight: FloatArray,
    scaling: LinearScaling,
    *,
    device: Any,
    stay_single: bool,
) -> Samples:
    """Scaled rows in canonical form, put in order on the device."""
    target = find_device(device)
    from softsplit.on_torch.grouping import grouped_samples

    return grouped_samples(X, y, n_groups, weight, scaling, target, stay_single=stay_single)


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
    """Rows on a device, measured and scaled there (arrival.py).

    None if they do not fit, or if that kind of scaling cannot be measured on a device.
    """
    target = find_device(device)
    from softsplit.on_torch.arrival import KINDS, arrive

    if kind not in KINDS:
        return None
    return arrive(X, y, n_groups, weight, kind, target, counts=counts)
