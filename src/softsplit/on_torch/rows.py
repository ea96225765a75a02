"""Rows on a device: the engine behind ``device="cuda"``.

The rows are copied to the device once, in slabs of pieces (pieces.py). Slabs that do not fit there
stay in pinned memory of the host, and pass through two buffers of the device, one of which is
filled while the other is read. The splits theta of engines/base.py become log-odds,

    s = steepness (x . theta[:-1] / n_features - theta[-1])

and sums over slabs are added in double precision, in their order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from types import ModuleType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from softsplit.engines.base import Sums
from softsplit.engines.gram import Metric
from softsplit.engines.samples import OfSamples, Samples
from softsplit.fitted.walk import Walk
from softsplit.on_torch.backend import enough_memory
from softsplit.on_torch.pieces import LARGEST, PIECE, DeviceSums, DeviceTree, Pieces
from softsplit.on_torch.recording import Recorder
from softsplit.on_torch.tensor_pass import OUTERS_ON_DEVICE, tensor_sums
from softsplit.on_torch.walks import arriving
from softsplit.support.arrays import FloatArray
from softsplit.tree.scaling import LinearScaling
from softsplit.variables.lookup import LookupColumn

SHARE = 0.8
"""Part of the free memory of a device that rows may take."""

SLAB = 2**28
"""Most bytes of a slab that is streamed."""

SINGLE_ACCURACY = 3e-7
"""How exact a value in single precision is, relative to it."""

GRAM_ROWS = 2**20
"""Rows of which the Gram matrix is added up at a time."""


@dataclass(frozen=True)
class DeviceRows(OfSamples):
    """Rows on a device, with the samples of the host that they were made of.

    Attributes
    ----------
    samples : Samples
    slabs : tuple of Pieces
        All rows, group by group.
    device : torch.device
    columns : int array, optional
        Those of the samples that are on the device; all if not given.
    """

    samples: Samples
    slabs: tuple[Pieces, ...]
    device: Any
    columns: NDArray[np.intp] | None = None

    @classmethod
    def of(
        cls, samples: Samples, device: Any, *, single: bool = False, room: int | None = None
    ) -> DeviceRows:
        """The rows of ``samples`` on a device, in single or in double precision.

        ``room`` is how many bytes rows may take there; what is free if not given.
        """
        # 1. Whether all rows fit there, and how many of them a slab has.
        dtype = torch.float32 if single else torch.float64
        bytes_of_row = (samples.n_features + 1) * (4 if single else 8)
        if room is None:
            room = cls.free(device)
        streamed = samples.n_rows * bytes_of_row > room
        most = min(SLAB, room // 3) // bytes_of_row if streamed else LARGEST // samples.n_features
        # 2. Slab by slab.
        slabs = []
        with enough_memory(f"{samples.n_rows} rows"):
            # A piece of every group may be filled up with rows of weight zero.
            size = max(PIECE, most - PIECE * samples.n_groups)
            for low in range(0, samples.n_rows, size):
                part = samples.between(low, min(low + size, samples.n_rows))
                home = "cpu" if streamed else device
                slabs.append(_pinned(Pieces.of(part, home, dtype), device))
        return cls(samples, tuple(slabs), device)

    @staticmethod
    def free(device: Any) -> int:
        """Bytes that rows may take on a device."""
        if device.type != "cuda":
            return int(1e15)
        return int(SHARE * torch.cuda.mem_get_info(device)[0])

    @property
    def n_features(self) -> int:
        return self.slabs[0].n_features

    @property
    def rounding(self) -> float:
        """How exact a value is, relative to it."""
        return 1e-12 if self.slabs[0].features.dtype == torch.float64 else SINGLE_ACCURACY

    @property
    def quick(self) -> bool:
        """Whether an evaluation takes a moment, however many rows there are."""
        return bool(self.device.type == "cuda") and not self._streamed

    def sample(self, limit: int | None = None) -> Samples:
        some = self.samples if limit is None else self.samples.stratified(limit)
        if self.columns is None:
            return some
        return replace(some, features=np.ascontiguousarray(some.features[self.columns]))

    def of_columns(self, columns: NDArray[np.intp]) -> DeviceRows:
        """The same rows with some of their columns."""
        chosen = torch.from_numpy(np.asarray(columns, dtype=np.int64))
        slabs = []
        with enough_memory("some columns of all rows"):
            for slab in self.slabs:
                slabs.append(_pinned(slab.of_columns(chosen), self.device))
        of_samples = columns if self.columns is None else self.columns[columns]
        return replace(self, slabs=tuple(slabs), columns=of_samples)

    def evaluate(self, splits: FloatArray, table: FloatArray, outer: int, steepness: float) -> Sums:
        per_weight = steepness / self.n_features
        lines = np.column_stack([splits[:, :-1] * per_weight, -steepness * splits[:, -1]])
        question = torch.from_numpy(np.concatenate([lines.ravel(), table.ravel()]))
        key = lines.shape, table.shape, outer
        with enough_memory("an evaluation"):
            if self._streamed or outer not in OUTERS_ON_DEVICE:
                sums = self._answer(*key, question.to(self.device)).cpu().numpy()
            else:
                answer = partial(self._answer, *key)
                sums = self._recorder.ask(key, question, answer).numpy()
        end = 1 + lines.size
        value, by_line = sums[0], sums[1:end].reshape(lines.shape)
        mass, by_table = (part.reshape(table.shape) for part in np.split(sums[end:], 2))
        by_split = np.column_stack([by_line[:, :-1] * per_weight, -steepness * by_line[:, -1]])
        return Sums(float(value), by_split, mass, by_table)

    def _answer(
        self, lines: tuple[int, ...], table: tuple[int, ...], outer: int, question: torch.Tensor
    ) -> torch.Tensor:
        """All sums in one line, at splits and a table of these shapes in one line."""
        size = lines[0] * lines[1]
        tree = DeviceTree(question[:size].view(lines), question[size:].view(table))
        whole: DeviceSums | None = None
        for slab in self._on_device():
            part = device_sums(slab, tree, outer)
            whole = part if whole is None else DeviceSums(*map(torch.add, whole, part))
        assert whole is not None
        return torch.cat([one.reshape(-1) for one in whole])

    @property
    def _streamed(self) -> bool:
        """Whether rows come from the host anew for each question."""
        return bool(self.slabs[0].features.device.type != self.device.type)

    @cached_property
    def _recorder(self) -> Recorder:
        return Recorder(self.device)

    def _on_device(self) -> Iterator[Pieces]:
        """The slabs one after another, where they are read; the next one is under way."""
        if not self._streamed:
            yield from self.slabs
            return
        copying = torch.cuda.Stream(self.device)
        reading = torch.cuda.current_stream(self.device)
        arriving = _sent(self.slabs[0], self.device, copying)
        for number in range(len(self.slabs)):
            reading.wait_stream(copying)
            here = arriving
            if number + 1 < len(self.slabs):
                arriving = _sent(self.slabs[number + 1], self.device, copying)
            for part in (here.features, here.weights, here.groups, here.filled):
                part.record_stream(reading)
            yield here
            # No more than two slabs at a time: the next but one waits until this one is read.
            copying.wait_stream(reading)

    def metric(self) -> Metric:
        n_features = self.n_features
        gram = torch.zeros((n_features + 1,) * 2, dtype=torch.float64, device=self.device)
        for slab in self._on_device():
            weights = slab.weights
            for low in range(0, slab.width, GRAM_ROWS):
                x = slab.lines(low, low + GRAM_ROWS).to(torch.float64) / n_features
                moves = torch.cat([x, -torch.ones_like(x[:1])])
                gram += (moves * weights[low : low + GRAM_ROWS]) @ moves.T
        return Metric.of(gram.cpu().numpy())

    def arriving(
        self,
        walk: Walk,
        scaling: LinearScaling,
        lookups: Sequence[LookupColumn] | None = None,
    ) -> FloatArray:
        """Weight of each group of rows that arrives in each leaf of a walk, all columns here.

        With ``lookups`` these are the features of the walk.
        """
        with enough_memory("a walk of all rows"):
            return arriving(walk, scaling, self._on_device(), lookups)

    def of_group(self, k: int) -> DeviceRows:
        slabs = tuple(slab.of_group(k) for slab in self.slabs)
        return replace(self, samples=self.samples.of_group(k), slabs=slabs)

    def with_samples(self, samples: Samples) -> DeviceRows:
        """The same rows on the device with the weights of ``samples``."""
        low, slabs = 0, []
        for slab in self.slabs:
            part = samples.between(low, low + slab.n_rows)
            slabs.append(_pinned(slab.with_weights(part), self.device))
            low += slab.n_rows
        return replace(self, samples=samples, slabs=tuple(slabs))


def device_sums(pieces: Pieces, tree: DeviceTree, outer: int) -> DeviceSums:
    """The sums of a tree over its rows: by the fused kernel where it fits, else in tensor code."""
    kernel = _kernel() if pieces.features.is_cuda else None
    known = outer in OUTERS_ON_DEVICE
    if kernel is not None and known and kernel.fits(pieces, len(tree.splits)):
        return kernel.fused_sums(pieces, tree, outer)
    return tensor_sums(pieces, tree, outer)


@cache
def _kernel() -> ModuleType | None:
    """The module of the fused kernel; None where there is no Triton."""
    try:
        from softsplit.on_torch import fused_pass
    except ImportError:
        return None
    return fused_pass


def _pinned(slab: Pieces, device: Any) -> Pieces:
    """A slab that can be copied in the background, where it is on the host of a GPU."""
    if device.type != "cuda" or slab.features.is_cuda:
        return slab
    return replace(slab, features=slab.features.pin_memory(), weights=slab.weights.pin_memory())


def _sent(slab: Pieces, device: Any, stream: Any) -> Pieces:
    """A copy of a slab on the device, under way on a stream."""
    with torch.cuda.stream(stream):
        return replace(
            slab,
            features=slab.features.to(device, non_blocking=True),
            weights=slab.weights.to(device, non_blocking=True),
            groups=slab.groups.to(device, non_blocking=True),
            filled=slab.filled.to(device, non_blocking=True),
        )
