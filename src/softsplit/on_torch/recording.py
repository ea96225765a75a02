"""A question to a device that is asked again and again: recorded once, then played.

Some ten small kernels surround the pass over the rows; to start each from Python takes longer than
they run. A recording starts all of them at once. Questions of several threads wait for one another:
the device answers one at a time anyway.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, NamedTuple

import torch

Answer = Callable[[torch.Tensor], torch.Tensor]

SINCE = 3
"""A question is recorded when it is asked for this time."""

_one_at_a_time = Lock()


class Recording(NamedTuple):
    """Kernels that read ``question`` and write ``answer``."""

    graph: Any
    question: torch.Tensor
    answer: torch.Tensor


class Recorder:
    """Answers questions, and records those that come again; each kind has a key."""

    def __init__(self, device: Any) -> None:
        self._device = device
        self._asked: Counter[Hashable] = Counter()
        self._recordings: dict[Hashable, Recording] = {}

    def ask(self, key: Hashable, question: torch.Tensor, answer: Answer) -> torch.Tensor:
        """The answer, in the memory of this process."""
        if self._device.type != "cuda":
            return answer(question)
        with _one_at_a_time:
            self._asked[key] += 1
            if self._asked[key] < SINCE:
                return answer(question.to(self._device)).cpu()
            if key not in self._recordings:
                self._recordings[key] = self._record(question, answer)
            recording = self._recordings[key]
            recording.question.copy_(question)
            recording.graph.replay()
            return recording.answer.cpu()

    def _record(self, question: torch.Tensor, answer: Answer) -> Recording:
        held = question.to(self._device)
        torch.cuda.synchronize(self._device)
        graph: Any = torch.cuda.CUDAGraph()
        with (
            torch.cuda.device(self._device),
            torch.cuda.graph(graph, capture_error_mode="thread_local"),
        ):
            answered = answer(held)
        return Recording(graph, held, answered)
