"""Other processes of the same Python: whether they may be started, and calls that run in one.

Threads share one interpreter, and code that is mostly Python gains nothing from a second one. A
``WorkerProcess`` runs such calls while this process continues. It is a plain subprocess, since
multiprocessing would run the program of the user again where processes are spawned.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing import parent_process
from pathlib import Path
from queue import SimpleQueue
from typing import Any


def n_cores() -> int:
    """Return the number of cores that this process may use, where the system tells."""
    with suppress(AttributeError):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def may_start_processes() -> bool:
    """Return False in a pool, where others work already, and where Python is embedded."""
    plain = "python" in Path(sys.executable or "").name.lower() and not hasattr(sys, "frozen")
    return plain and parent_process() is None and n_cores() > 1


def start_python(
    code: str, *before: str, pipes: int = subprocess.DEVNULL
) -> subprocess.Popen[bytes] | None:
    """Start the same Python with the same paths; None where that fails.

    -P keeps the working directory out of the paths. ``before`` is put before the options of Python,
    and ``pipes`` are its input and output.
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    try:
        return subprocess.Popen(
            [sys.executable, *before, "-P", "-c", code],
            env=environment, stdin=pipes, stdout=pipes, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    except OSError:
        return None


class ProcessEnded(RuntimeError):
    """The worker has ended: by ``close``, by itself, or because communication failed."""


class WorkerProcess:
    """A process that runs one function at a time, for one thread of this process at a time.

    ``start`` returns at once, while the process imports what the functions need.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._one_at_a_time = threading.Lock()
        self._ready = False
        self.closed = False

    @classmethod
    def start(cls, modules: Sequence[str]) -> WorkerProcess | None:
        """Start a process that imports ``modules``; None where it cannot or should not be."""
        if not may_start_processes():
            return None
        code = f"from {__name__} import serve; serve({list(modules)!r})"
        process = start_python(code, pipes=subprocess.PIPE)
        return None if process is None else cls(process)

    def wait(self) -> None:
        """Wait until the process has imported its modules, or has ended."""
        with self._one_at_a_time:
            if not self._ready:
                with suppress(ProcessEnded):  # the next call will tell
                    self._receive()
                self._ready = True

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return what a function of a module returns there, or raise what it raises."""
        self.wait()
        with self._one_at_a_time:
            try:
                assert self._process.stdin is not None
                pickle.dump((function, arguments), self._process.stdin, protocol=5)
                self._process.stdin.flush()
            except Exception as error:  # a broken pipe, arguments that cannot be sent
                self._process.kill()
                raise ProcessEnded from error
            fine, result = self._receive()
        if not fine:
            raise result
        return result

    def close(self) -> None:
        """End the process, whatever it does."""
        self.closed = True
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()

    def _receive(self) -> Any:
        assert self._process.stdout is not None
        try:
            return pickle.load(self._process.stdout)
        except Exception as error:  # its end, or an answer that cannot be read here
            self._process.kill()
            raise ProcessEnded from error


def serve(modules: Sequence[str]) -> None:
    """Answer calls in the worker process until its parent closes the pipe or ends.

    Standard output carries the answers, so what libraries print there goes elsewhere. The worker
    ignores Ctrl-C: its parent handles it and ends the worker.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    calls: SimpleQueue[Any] = SimpleQueue()

    def listen() -> None:
        try:
            while True:
                calls.put(pickle.load(sys.stdin.buffer))
        finally:  # whatever cannot be read, a caller waits for an answer or for the end
            os._exit(0)

    for module in modules:
        __import__(module)
    warnings.simplefilter("ignore")
    threading.Thread(target=listen, daemon=True).start()
    _answer(answers, None)
    while True:
        function, arguments = calls.get()
        try:
            answer = True, function(*arguments)
        except Exception as error:
            answer = False, error
        _answer(answers, answer)


def _answer(answers: Any, answer: Any) -> None:
    pickle.dump(answer, answers, protocol=5)
    answers.flush()
