"""IPOPT in a process of its own, so that a time limit holds.

IPOPT looks at the clock between iterations only, and one factorisation can take minutes. The
parent therefore starts a second Python, sends the problem through a pipe, collects the iterates,
and ends the process when the time is up. A plain subprocess is used because multiprocessing would
import the user's script again.

Messages are pickles, one after the other. Parent to child: (run, problem, start, max_iter, tol,
deadline). Child to parent: ("begun", None) when the request has been read, ("iterate",
(parameters, value, violation)) as often as there are iterations, and in the end ("outcome",
IpoptOutcome) or ("error", text); with each the processor time of the child so far, which the parent
cannot see.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, ClassVar

from softsplit.ipopt.bridge import IpoptOutcome, IpoptProgress
from softsplit.problem.problem import TrainingProblem
from softsplit.solvers.base import Budget, Start, Status
from softsplit.tree.parameters import TreeParameters

CHILD = f"from {__name__} import main; main()"

GRACE = 0.5
"""Seconds a run gets to hand over its result after IPOPT itself has seen the limit."""

Run = Callable[[TrainingProblem, Start, Budget, IpoptProgress], IpoptOutcome]

Message = tuple[str, Any, float]
"""Kind, content, and processor seconds of the sender."""


def run_with_limit(
    run: Run, problem: TrainingProblem, start: Start, budget: Budget
) -> IpoptOutcome:
    """Call ``run`` in a child process and stop it when the budget's time is up."""
    progress = IpoptProgress()
    if budget.remaining <= 0:
        return _stopped(problem, start, progress, "timeout")
    # perf_counter has a different origin in every process.
    deadline = time.time() + budget.remaining
    worker = _Worker.idle_or_new()
    kind, content = "interrupt", None
    try:
        with suppress(KeyboardInterrupt):
            worker.send((run, problem, start, budget.max_iter, budget.tol, deadline))
            kind, content = worker.collect(deadline + GRACE, progress)
    finally:
        worker.release(clean=kind == "outcome")
    if kind == "outcome":
        assert isinstance(content, IpoptOutcome)
        outcome = content
    else:
        outcome = _stopped(problem, start, progress, kind, content)
    return replace(outcome, child_cpu_seconds=worker.cpu_seconds)


class _Worker:
    """A child process. One that has done its work waits for more: starting one takes seconds."""

    idle: ClassVar[list[_Worker]] = []

    def __init__(self) -> None:
        self.owner = os.getpid()
        self.messages: queue.Queue[Message] = queue.Queue()
        self._begun: float | None = None
        self._cpu = 0.0
        self.process = _launch()
        self.reader = threading.Thread(
            target=_receive, args=(self.process.stdout, self.messages), daemon=True
        )
        self.reader.start()

    @classmethod
    def idle_or_new(cls) -> _Worker:
        while cls.idle:
            worker = cls.idle.pop()
            # After a fork the pipes of the parent are here too, and not ours to use.
            if worker.owner == os.getpid() and worker.process.poll() is None:
                return worker
        return cls()

    @property
    def cpu_seconds(self) -> float:
        """Processor time of the last request, without what it took to start the process."""
        return 0.0 if self._begun is None else max(self._cpu - self._begun, 0.0)

    def send(self, request: Any) -> None:
        self._begun = None
        # In a thread, since the child may be slow to read; if it is gone, the reader says so.
        threading.Thread(target=_send, args=(self.process.stdin, request), daemon=True).start()

    def collect(self, end: float, progress: IpoptProgress) -> tuple[str, Any]:
        """Keep the iterates that arrive until the last message, which is returned."""
        while True:
            try:
                message = self.messages.get(timeout=max(end - time.time(), 0.0))
            except queue.Empty:
                return "timeout", None
            kind, content, cpu = message
            self._cpu = max(self._cpu, cpu)
            if kind == "begun":
                self._begun = cpu
            elif kind == "iterate":
                progress.keep(*content)
            else:
                return kind, content

    def release(self, clean: bool) -> None:
        if clean:
            _Worker.idle.append(self)
        else:
            self.stop()

    def stop(self) -> None:
        self.process.kill()
        self._cpu = max(self._cpu, _wait(self.process))
        self.reader.join()
        with contextlib.suppress(OSError):
            if self.process.stdin is not None:
                self.process.stdin.close()


@atexit.register
def _stop_idle() -> None:
    for worker in _Worker.idle:
        if worker.owner == os.getpid():
            worker.stop()
    _Worker.idle.clear()


def _launch() -> subprocess.Popen[bytes]:
    # The child must find the same softsplit, however this process came to it.
    folder = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join([folder, *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.Popen(
        [sys.executable, "-c", CHILD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": path},
    )


def _wait(process: subprocess.Popen[bytes]) -> float:
    """Wait for the end of a child; its processor seconds, 0 where the system does not tell."""
    if sys.platform != "win32":
        with contextlib.suppress(ChildProcessError):  # somebody has waited already
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            return used.ru_utime + used.ru_stime
    process.wait()
    return 0.0


def _send(stream: IO[bytes], request: Any) -> None:
    with contextlib.suppress(OSError, ValueError):
        pickle.dump(request, stream, protocol=pickle.HIGHEST_PROTOCOL)
        stream.flush()


def _receive(stream: IO[bytes], messages: queue.Queue[Message]) -> None:
    with stream:
        while True:
            try:
                messages.put(pickle.load(stream))
            except (EOFError, OSError, ValueError, pickle.UnpicklingError):
                messages.put(("error", "the IPOPT process ended without a result", 0.0))
                return


def _stopped(
    problem: TrainingProblem,
    start: Start,
    progress: IpoptProgress,
    kind: str,
    said: str | None = None,
) -> IpoptOutcome:
    """The best of what was received; the start itself if nothing was."""
    ends = {"timeout": Status.TIME_LIMIT, "interrupt": Status.INTERRUPTED}
    parameters = progress.pick(problem, problem.pin(start.parameters))
    message = said or f"stopped after {progress.n_iter} iterations"
    return IpoptOutcome(parameters, ends.get(kind, Status.FAILED), progress.n_iter, message)


def main() -> None:
    """The child: for each request, run it, write iterates and the outcome."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Nothing that a library prints may end up among the messages.
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    while True:
        try:
            request = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        except Exception as error:
            # What the parent has sent cannot be read here, and what follows it neither.
            _reply(replies, ("error", f"{type(error).__name__}: {error}"))
            return
        _reply(replies, ("begun", None))
        _reply(replies, _answer(replies, *request))


def _answer(
    replies: IO[bytes],
    run: Run,
    problem: TrainingProblem,
    start: Start,
    max_iter: int | None,
    tol: float,
    deadline: float,
) -> tuple[str, Any]:
    def tell(parameters: TreeParameters, value: float, violation: float) -> None:
        _reply(replies, ("iterate", (parameters, value, violation)))

    try:
        budget = Budget(max_iter, tol, deadline - time.time())
        return "outcome", run(problem, start, budget, IpoptProgress(tell))
    except Exception as error:
        return "error", f"{type(error).__name__}: {error}"


def _reply(stream: IO[bytes], message: tuple[str, Any]) -> None:
    try:
        signed: Message = (*message, time.process_time())
        pickle.dump(signed, stream, protocol=pickle.HIGHEST_PROTOCOL)
        stream.flush()
    except OSError:
        os._exit(1)  # The parent is gone, and with it any reason to go on.
