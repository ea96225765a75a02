"""Work that several processes share is done once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from softsplit.training.precompile import SharedJobs

# Locks a job, says so, and keeps the lock until it is killed.
HOLDER = """
import sys, time
from pathlib import Path
from softsplit.training.precompile import SharedJobs
with SharedJobs(Path(sys.argv[1]), "now").lock("a") as mine:
    print(mine, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def jobs(tmp_path):
    return SharedJobs(tmp_path, "now")


@pytest.fixture
def holder(tmp_path):
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "True\n"
        yield process
        process.kill()


def test_a_job_is_done_once(jobs):
    calls = []
    for _ in range(2):
        jobs.run({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, 0.0)
    assert calls == ["a", "b"]
    jobs.run({"a": lambda: calls.append("again")}, 0.0, backwards=True)
    assert calls == ["a", "b"]


def test_two_begin_at_different_ends(jobs):
    calls = []
    jobs.run({name: lambda name=name: calls.append(name) for name in "abc"}, 0.0, backwards=True)
    assert calls == ["c", "b", "a"]


def test_another_version_or_machine_does_it_again(jobs, tmp_path):
    jobs.mark_done("a")
    assert jobs.is_done("a") and not SharedJobs(tmp_path, "later").is_done("a")


def test_what_another_process_is_at_is_left_to_it(jobs, holder):
    calls = []
    jobs.run({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, 0.1)
    assert calls == ["b"] and not jobs.is_done("a")


def test_what_another_process_leaves_behind_is_taken_up(jobs, holder):
    """However it ends."""
    os.kill(holder.pid, signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)
    calls = []
    jobs.run({"a": lambda: calls.append("a")}, 60.0)
    assert calls == ["a"] and jobs.is_done("a")


def test_a_job_that_fails_is_not_done(jobs):
    def fail():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        jobs.run({"a": fail}, 0.0)
    with jobs.lock("a") as mine:
        assert mine and not jobs.is_done("a")


def test_where_nothing_can_be_written_work_goes_on(tmp_path):
    calls = []
    SharedJobs(tmp_path / "absent", "now").run({"a": lambda: calls.append("a")}, 0.0)
    assert calls == ["a"]


def test_a_damaged_file_is_no_word(jobs, tmp_path):
    jobs.mark_done("a")
    (file,) = tmp_path.glob("*.done")
    file.write_bytes(b"\xff\xfe")
    assert not jobs.is_done("a")
