"""Work that several processes share is done once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from softsplit.support.turns import Turns

# Takes the turn of a piece, says so, and holds it until it is killed.
HOLDER = """
import sys, time
from pathlib import Path
from softsplit.support.turns import Turns
with Turns(Path(sys.argv[1]), "now").turn("a") as mine:
    print(mine, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def turns(tmp_path):
    return Turns(tmp_path, "now")


@pytest.fixture
def holder(tmp_path):
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "True\n"
        yield process
        process.kill()


def test_a_piece_is_done_once(turns):
    calls = []
    for _ in range(2):
        turns.work({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, 0.0)
    assert calls == ["a", "b"]
    turns.work({"a": lambda: calls.append("again")}, 0.0, backwards=True)
    assert calls == ["a", "b"]


def test_two_begin_at_different_ends(turns):
    calls = []
    turns.work({name: lambda name=name: calls.append(name) for name in "abc"}, 0.0, backwards=True)
    assert calls == ["c", "b", "a"]


def test_another_version_or_machine_does_it_again(turns, tmp_path):
    turns.note("a")
    assert turns.is_done("a") and not Turns(tmp_path, "later").is_done("a")


def test_what_another_process_is_at_is_left_to_it(turns, holder):
    calls = []
    turns.work({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, 0.1)
    assert calls == ["b"] and not turns.is_done("a")


def test_what_another_process_leaves_behind_is_taken_up(turns, holder):
    """However it ends."""
    os.kill(holder.pid, signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)
    calls = []
    turns.work({"a": lambda: calls.append("a")}, 60.0)
    assert calls == ["a"] and turns.is_done("a")


def test_a_piece_that_fails_is_not_done(turns):
    def fail():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        turns.work({"a": fail}, 0.0)
    with turns.turn("a") as mine:
        assert mine and not turns.is_done("a")


def test_where_nothing_can_be_written_work_goes_on(tmp_path):
    calls = []
    Turns(tmp_path / "absent", "now").work({"a": lambda: calls.append("a")}, 0.0)
    assert calls == ["a"]


def test_a_damaged_file_is_no_word(turns, tmp_path):
    turns.note("a")
    (file,) = tmp_path.glob("*.done")
    file.write_bytes(b"\xff\xfe")
    assert not turns.is_done("a")
