"""Compiled functions on disk: files that are stale, damaged or cannot be written do no harm.

Numba keeps an index and machine code of every function as pickles and trusts what it reads. It
builds the types of an index before it looks whether they are those of the present sources, and
takes a cut or changed file at its word. Here each file begins with a hash of numba's version, the
stamp of the sources and the content; where that does not fit, the function is compiled anew. Where
nothing can be written, compiled code serves the process that has made it.
"""

from __future__ import annotations

import hashlib
import pickle
from functools import cache
from typing import Any

from numba.core.caching import IndexDataCacheFile

from softsplit.support.messages import announce

NOTICE = (
    "compiled code cannot be kept on disk ({}), and every new process will compile anew; make "
    "room, or name a folder in NUMBA_CACHE_DIR."
)
_DIGEST = hashlib.sha256().digest_size


def keep_on_disk(dispatcher: Any, stamp: tuple[str, int]) -> None:
    """Look for compiled forms of a function on disk from now on, and keep new ones there."""
    try:
        dispatcher.enable_caching()
    except RuntimeError:  # numba knows of no folder that it may write
        _say_once("there is no folder for it")
        return
    dispatcher._cache._cache_file = CheckedFiles(dispatcher._cache._cache_file, stamp)


@cache
def _say_once(reason: str) -> None:
    announce(NOTICE.format(reason))


class CheckedFiles(IndexDataCacheFile):
    """The files of one function, in the folder and under the names that numba has chosen."""

    def __init__(self, chosen: IndexDataCacheFile, stamp: tuple[str, int]) -> None:
        vars(self).update(vars(chosen))
        self._source_stamp = stamp

    def save(self, key: Any, data: Any) -> None:
        """Keep the machine code for one signature, in a file that is named after it.

        Numba numbers the files. Two processes that compile a function for different signatures at
        the same time give both the same number, and one would run the code of the other.
        """
        name = hashlib.sha256(repr(key).encode()).hexdigest()[:16]
        name = f"{self._index_name.removesuffix('.nbi')}.{name}.nbc"
        try:
            self._save_data(name, data)
            self._save_index(self._load_index() | {key: name})
        except OSError as error:
            _say_once(error.strerror or "the disk cannot be written")

    def _load_index(self) -> dict[Any, str]:
        try:
            index: dict[Any, str] = self._read(self._index_path)
        except OSError:
            return {}
        return index

    def _save_index(self, overloads: dict[Any, str]) -> None:
        self._write(self._index_path, overloads)

    def _load_data(self, name: str) -> Any:
        return self._read(self._data_path(name))

    def _save_data(self, name: str, data: Any) -> None:
        self._write(self._data_path(name), data)

    def _read(self, path: str) -> Any:
        with open(path, "rb") as file:
            digest, content = file.read(_DIGEST), file.read()
        if digest != self._digest(content):
            raise FileNotFoundError(path)
        return pickle.loads(content)

    def _write(self, path: str, value: Any) -> None:
        content = self._dump(value)
        with self._open_for_write(path) as file:
            file.write(self._digest(content) + content)

    def _digest(self, content: bytes) -> bytes:
        return hashlib.sha256(f"{self._version} {self._source_stamp}\n".encode() + content).digest()
