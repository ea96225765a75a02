"""PyTorch and its devices: found when they are asked for, or one sentence that says what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from softsplit.support.messages import unfit


class DeviceError(RuntimeError):
    """A device that was asked for cannot be used."""


def torch_library() -> Any:
    """PyTorch, if it is installed."""
    try:
        return import_module("torch")
    except ImportError:
        raise ImportError(
            "device needs PyTorch, which is not installed; run pip install 'softsplit[gpu]', or "
            "leave device at None."
        ) from None


def find_device(name: Any) -> Any:
    """The device of that name, "cuda", "cuda:1" or "cpu", if it is there."""
    if not isinstance(name, str) or not re.fullmatch(r"cpu|cuda(:\d{1,4})?", name):
        raise unfit("device", name, "must be None, 'cuda' or 'cpu'")
    torch = torch_library()
    device = torch.device(name)
    if device.type == "cpu":
        return device
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if count == 0:
        raise DeviceError(
            f"device {name!r} needs an NVIDIA GPU that PyTorch can use, and there is none here; "
            "set device='cpu' or None."
        )
    if device.index is not None and device.index >= count:
        raise DeviceError(f"there is no device {name!r}; the last one here is 'cuda:{count - 1}'.")
    return device


@contextmanager
def enough_memory(what: str) -> Iterator[None]:
    """Turn the lack of device memory into one sentence."""
    torch = torch_library()
    try:
        yield
    except torch.cuda.OutOfMemoryError:
        raise DeviceError(
            f"the device has too little free memory for {what}; end other programs that use it, "
            "give fewer rows, or set device=None."
        ) from None
