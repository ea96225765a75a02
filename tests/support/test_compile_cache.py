"""Compiled functions on disk: stale, damaged and unwritable files."""

from __future__ import annotations

import importlib.util
import logging
import os
import pickle
import pkgutil
import random
import shutil
import subprocess
import sys
from pathlib import Path

import numba as nb
import pytest

import softsplit
from fault_runs import as_a_user, damaged
from softsplit.support import compiling
from softsplit.support.compiling import Compiled, keep_on_disk, source_stamp

SOURCE = """
def doubled(x):
    return 2 * x
"""
STAMP = ("sources", 0)


@pytest.fixture
def doubled(tmp_path, monkeypatch):
    """Makes the same function again, as a new process would, with a stamp."""
    monkeypatch.syspath_prepend(str(tmp_path))
    path = tmp_path / "source.py"
    path.write_text(SOURCE)
    compiling._warn_once.cache_clear()

    def make(stamp=STAMP):
        names = {"__name__": "source"}
        exec(compile(path.read_text(), str(path), "exec"), names)
        function = nb.njit(names["doubled"])
        keep_on_disk(function, stamp)
        return function

    yield make
    compiling._warn_once.cache_clear()


def files(tmp_path):
    found = sorted((tmp_path / "__pycache__").glob("source.doubled*.nb?"))
    return [next(f for f in found if f.suffix == suffix) for suffix in (".nbi", ".nbc")]


def hits(function):
    return sum(function.stats.cache_hits.values())


def test_a_new_process_finds_what_was_compiled(doubled, tmp_path):
    first = doubled()
    assert first(3) == 6 and hits(first) == 0
    again = doubled()
    assert again(3) == 6 and hits(again) == 1
    assert len(files(tmp_path)) == 2


def test_other_sources_are_compiled_anew(doubled):
    doubled()(3)
    changed = doubled(("other sources", 0))
    assert changed(3) == 6 and hits(changed) == 0
    back = doubled()
    assert back(3) == 6 and hits(back) == 0


class Trap:
    """What must not be built: a type of sources that are no more."""

    def __reduce__(self):
        return (pytest.fail, ("an index of other sources was unpickled",))


@pytest.mark.parametrize("which", [0, 1])
def test_files_of_other_sources_are_not_unpickled(which, doubled, tmp_path):
    function = doubled()
    function(3)
    path = files(tmp_path)[which]
    old = function._cache._cache_file
    old.stamp = ("older sources", 0)
    trap = pickle.dumps({"key": Trap()})
    path.write_bytes(old._digest(trap) + trap)
    again = doubled()
    assert again(3) == 6 and hits(again) == 0
    path.write_bytes(pickle.dumps(nb.__version__) + trap)  # as numba itself writes an index
    again = doubled()
    assert again(3) == 6 and hits(again) == 0


def test_damaged_files_are_compiled_anew(doubled, tmp_path):
    doubled()(3)
    whole = [path.read_bytes() for path in files(tmp_path)]
    rng = random.Random(0)
    compiled_anew = 0
    for _ in range(20):
        paths = files(tmp_path)
        for path, content in zip(paths, whole, strict=True):
            path.write_bytes(content)
        which = rng.randrange(2)
        broken = damaged(whole[which], rng)
        paths[which].write_bytes(broken)
        again = doubled()
        assert again(3) == 6
        assert hits(again) == (broken == whole[which])
        compiled_anew += hits(again) == 0
        once_more = doubled()
        assert once_more(3) == 6 and hits(once_more) == 1
    assert compiled_anew > 15


def test_a_package_that_nobody_may_write_into(tmp_path):
    """A container whose file system is read-only: nowhere is a place for compiled code."""
    try:
        prefix = as_a_user()
    except FileNotFoundError:
        pytest.skip("root may write everything, and there is no setpriv to be less than root")
    package = tmp_path / "site" / "softsplit"
    hidden = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(softsplit.__file__).parent, package, ignore=hidden)
    folders = [tmp_path, package.parent, package, *(p for p in package.rglob("*") if p.is_dir())]
    for folder in reversed(folders):
        folder.chmod(0o555)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("XDG_", "NUMBA_"))}
    environment |= {"PYTHONPATH": str(package.parent), "HOME": str(tmp_path)}
    code = "import softsplit.engines.block_pass as f; f.block_pass.dispatcher; print(f.__file__)"
    command = [*prefix, sys.executable, "-c", code]
    try:
        done = subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=600
        )
    finally:
        for folder in folders:
            folder.chmod(0o755)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(package / "engines" / "block_pass.py")
    assert done.stderr.count("\n") == 1
    assert "cannot be kept on disk (there is no folder for it), and every new" in done.stderr


# The cache of compiled code: its stamp covers every source file that compiles something.


PACKAGE = Path(softsplit.__file__).parent


def dispatchers():
    """Every compiled function of the package, by module and name."""
    found = {}
    for module in pkgutil.walk_packages([str(PACKAGE)], "softsplit."):
        try:
            made = importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            assert error.name in ("torch", "triton")  # softsplit[gpu] is not installed
            continue
        for name, value in vars(made).items():
            if isinstance(value, Compiled):
                found[f"{value.py_func.__module__}.{name}"] = value
    return found


def sources_that_compile():
    return sorted({Path(found.py_func.__code__.co_filename) for found in dispatchers().values()})


@pytest.fixture
def copied(tmp_path):
    ignore = shutil.ignore_patterns("__pycache__")
    return shutil.copytree(PACKAGE, tmp_path / "softsplit", ignore=ignore)


def test_every_compiled_function_has_the_stamp_of_the_package():
    found = dispatchers()
    assert len(found) > 20
    stamps = {name: one.dispatcher._cache._cache_file.stamp for name, one in found.items()}
    assert {name for name, stamp in stamps.items() if stamp != source_stamp()} == set()


def test_a_change_in_any_file_that_compiles_changes_the_stamp(copied, monkeypatch):
    """In one interpreter, as a start for each file would take long."""
    spec = importlib.util.spec_from_file_location("copied", copied / "support" / "compiling.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    stamp = module.source_stamp.__wrapped__
    before = stamp()
    files = [copied / path.relative_to(PACKAGE) for path in sources_that_compile()]
    assert len(files) >= 5
    for path in files:
        text = path.read_text()
        path.write_text(text + "\n# changed\n")
        assert stamp() != before, path.name
        path.write_text(text)
        assert stamp() == before


def test_a_full_disk_is_said_once_and_compiled_code_serves(doubled, monkeypatch, caplog):
    def full(*_arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(compiling.CheckedFiles, "_write", full)
    function = doubled()
    with caplog.at_level(logging.WARNING):
        assert function(3) == 6
        assert function(1.5) == 3.0
    (record,) = caplog.records
    assert record.getMessage().startswith(
        "softsplit: compiled code cannot be kept on disk (No space left on device), and every new"
    )
