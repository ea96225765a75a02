"""Reading a file that may be hostile: what must hold whatever is in it.

A reader returns something sound or raises its own error with one sentence. Nothing in the file is
run: while a file is read, an audit hook notes every event by which code comes to run or leaves the
process.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from mutated_files import valid_files
from softsplit import export_text
from softsplit.data import read_dataset
from softsplit.data.files import read_table, typed
from softsplit.experiments.cells import chains_of
from softsplit.experiments.spec import load_spec
from softsplit.persistence import ModelFileError, dumps_model, load_model, loads_model

SECONDS = 20
"""A reader that takes longer hangs; most take milliseconds, on files of some kilobytes.

Of the processor: on a busy machine the clock on the wall says nothing about a reader.
"""

# Ten names of columns of 500 characters: long, but with an end.
LONGEST_SENTENCE = 6000

FORBIDDEN = (
    "compile", "exec", "import", "pickle.find_class", "marshal.loads", "ctypes.dlopen", "os.system",
    "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty", "subprocess.Popen",
    "socket.connect", "socket.bind", "socket.getaddrinfo", "os.remove", "os.rename", "os.mkdir",
    "os.rmdir", "os.chmod", "os.link", "os.symlink", "os.truncate", "shutil.rmtree", "os.putenv",
    "urllib.Request", "sqlite3.connect", "code.__new__", "function.__new__",
)  # fmt: skip


class Unsound(Exception):
    """A reader did what it must not do."""


_armed: list[Path] = []
_noted: list[str] = []


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if not _armed:
        return
    if event == "open":
        path, mode, flags = (*arguments, None, None)[:3]
        writes = any(c in str(mode) for c in "wax+") or (flags or 0) & (os.O_WRONLY | os.O_RDWR)
        if writes or (isinstance(path, str) and Path(path) != _armed[0]):
            _noted.append(f"open {path!r} {mode}")
    elif event in FORBIDDEN:
        _noted.append(f"{event} {arguments!r}"[:200])


_hooked: list[bool] = []


@cache
def _warm_up() -> None:
    """Libraries load parts of themselves on first use; that is no doing of the file.

    All kinds: a damaged Parquet file may be taken for text.
    """
    for kind, (name, _, reader) in READERS.items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            for content in valid_files(kind):
                path.write_bytes(content)
                reader(path)()


@contextmanager
def nothing_runs(path: Path) -> Iterator[None]:
    """Only ``path`` may be opened, for reading; no code may be made, loaded or started."""
    if not _hooked:
        sys.addaudithook(_note)  # for good: a hook cannot be removed
        _hooked.append(True)
    _noted.clear()
    _armed.append(path)
    try:
        yield
    finally:
        _armed.clear()
    if _noted:
        raise Unsound(f"code ran or files were touched: {_noted[:3]}")


def _model(path: Path) -> Callable[[], None]:
    tree = load_model(path)

    def check() -> None:
        # Far outside the training range too: the answers are probabilities all the same.
        rows = np.vstack(
            [tree.tree_.summary.low, tree.tree_.summary.high, tree.tree_.summary.high * 1e5]
        )
        answers, classes = tree.tree_.surface(rows), tree.tree_.numbers is None
        if not np.all(np.isfinite(answers)) or (classes and not np.allclose(answers.sum(1), 1.0)):
            raise Unsound(f"probabilities or numbers {answers}")
        text = dumps_model(tree)
        text.encode()
        if dumps_model(loads_model(text)) != text:
            raise Unsound("a loaded tree is not the tree that was saved")
        export_text(tree).encode()

    return check


def _spec(path: Path) -> Callable[[], None]:
    spec = load_spec(str(path))

    def check() -> None:
        if Path(f"{spec.store_name}.sqlite").name != f"{spec.store_name}.sqlite":
            raise Unsound(f"the store of spec {spec.name!r} lies in another folder")
        list(itertools.islice(chains_of(spec), 100))

    return check


def _table(path: Path) -> Callable[[], None]:
    table = read_table(path)
    typed(table)
    columns = [str(c) for c in table.frame.columns]
    if len(columns) != len(set(columns)):
        raise Unsound(f"repeated columns {columns}")

    def check() -> None:
        if not columns:
            raise Unsound("a table without columns")
        try:
            data = read_dataset(path, columns[-1], missing="drop")
        except ValueError as error:
            _check_sentence(error, ValueError)
            return
        if not np.all(np.isfinite(data.X)) or len(data.class_names) < 2:
            raise Unsound(f"data set {data}")

    return check


READERS: dict[str, tuple[str, type[Exception], Callable[[Path], Callable[[], None]]]] = {
    "model": ("model.json", ModelFileError, _model),
    "spec": ("spec.toml", ValueError, _spec),
    "csv": ("table.csv", ValueError, _table),
    "csv.gz": ("table.csv.gz", ValueError, _table),
    "parquet": ("table.parquet", ValueError, _table),
}


def read_hostile(kind: str, content: bytes, folder: Path) -> str:
    """Read ``content`` as a file of that kind: "loaded", or the sentence with which it is refused.

    Anything else, be it another exception, a warning, a running line or a hang, raises.
    """
    name, refusal, reader = READERS[kind]
    path = folder / name
    path.write_bytes(content)
    _warm_up()
    with _at_most(SECONDS), warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            with nothing_runs(path):
                check = reader(path)
        except refusal as error:
            return _check_sentence(error, refusal)
        check()
    return "loaded"


def _check_sentence(error: Exception, refusal: type[Exception]) -> str:
    """Our own errors, not their subclasses: those come from parsers, with words of their own."""
    said = str(error)
    if type(error) is not refusal:
        raise Unsound(f"{type(error).__name__} in place of {refusal.__name__}: {said}") from error
    if not said.endswith((".", "?")) or "\n" in said or len(said) > LONGEST_SENTENCE:
        raise Unsound(f"no plain sentence: {said[:LONGEST_SENTENCE]!r}") from error
    return said


@contextmanager
def _at_most(seconds: int) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise Unsound(f"took more than {seconds} s")

    before = signal.signal(signal.SIGPROF, stop)
    # Once more every second: an exception inside a callback of the interpreter is swallowed.
    signal.setitimer(signal.ITIMER_PROF, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)
