"""Many rows in memory, whose passes threads share: all goes through ``evaluate``.

Compiled descents hold arrays of branches x rows and run on one thread; on many rows a descent in
Python over these sums (row_sums.py) is faster, and takes no more memory than the rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from softsplit.engines.base import Sums
from softsplit.engines.gram import Metric
from softsplit.engines.row_sums import row_sums
from softsplit.engines.samples import OfSamples, Samples
from softsplit.support.arrays import FloatArray


@dataclass(frozen=True)
class ThreadedRows(OfSamples):
    """Rows in the memory of this process, or with ``columns`` some of their columns, not copied."""

    samples: Samples
    threads: int = 1
    columns: NDArray[np.intp] | None = None

    @property
    def n_features(self) -> int:
        return self.samples.n_features if self.columns is None else len(self.columns)

    def evaluate(self, splits: FloatArray, table: FloatArray, outer: int, steepness: float) -> Sums:
        columns = np.arange(self.samples.n_features) if self.columns is None else self.columns
        return row_sums(self.samples, columns, splits, table, outer, steepness, self.threads)

    def metric(self) -> Metric:
        return self.samples.gram.metric

    def sample(self, limit: int | None = None) -> Samples:
        if limit is None and self.columns is None:
            return self.samples
        return self.samples.stratified(limit or self.n_rows, columns=self.columns)

    def reweighed(self, seed: int, power: float) -> ThreadedRows:
        shares = np.random.default_rng(seed).standard_exponential(self.n_rows)
        return self._with(self.samples.with_weights(self.samples.weights * shares**power))

    def of_class(self, k: int) -> ThreadedRows:
        return self._with(self.samples.of_class(k))

    def of_columns(self, columns: NDArray[np.intp]) -> ThreadedRows:
        """The same rows with some of their columns."""
        return replace(self, columns=columns)

    def in_threads(self, threads: int) -> ThreadedRows:
        """The same rows, passes over which are shared by so many threads."""
        return replace(self, threads=threads)

    def _with(self, samples: Samples) -> ThreadedRows:
        return replace(self, samples=samples)
