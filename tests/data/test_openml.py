"""Data sets from OpenML, with a server of our own in its place."""

from __future__ import annotations

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import pytest

from softsplit.data import load_dataset, named

ARFF = """@RELATION paint
@ATTRIBUTE width NUMERIC
@ATTRIBUTE 'the colour' {red,blue,green}
@ATTRIBUTE class {good,poor}
@DATA
1.5,red,poor
2.0,blue,good
?,red,good
3.0,green,good
0.5,?,poor
"""
KNOWN = {
    "rows": 3,
    "columns": 2,
    "class_counts": [2, 1],
    "categorical": [1],
    "table": "drop-first",
    "reported": "onehot",
    "openml": {"id": 77, "version": 2},
}


class Server(HTTPServer):
    """Answers as OpenML does; ``answers`` maps a path to status and content."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[str] = []
        self.answers: dict[str, tuple[int, bytes]] = {}
        self.address = f"http://127.0.0.1:{self.server_port}"

    def offer(self, arff: str, **changes: object) -> None:
        content = arff.encode()
        description = {
            "id": "77",
            "name": "paint",
            "version": "2",
            "url": f"{self.address}/data/paint.arff",
            "default_target_attribute": "class",
            "md5_checksum": hashlib.md5(content).hexdigest(),
            **changes,
        }
        text = json.dumps({"data_set_description": description}).encode()
        self.answers = {"/api/v1/json/data/77": (200, text), "/data/paint.arff": (200, content)}


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        status, content = self.server.answers.get(self.path, (404, b""))
        self.send_response(status)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def server(tmp_path, monkeypatch):
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.delenv("SOFTSPLIT_DATA", raising=False)
    monkeypatch.setenv("SOFTSPLIT_OPENML", server.address)
    monkeypatch.setenv("SOFTSPLIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(named.catalogue(), "paint", KNOWN)
    server.offer(ARFF)
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_set_is_fetched_coded_and_freed_of_incomplete_rows(server):
    data = load_dataset("paint", "reported")
    assert data.feature_names == ("width", "the colour=blue", "the colour=green", "the colour=red")
    np.testing.assert_array_equal(data.X, [[1.5, 0, 0, 1], [2.0, 1, 0, 0], [3.0, 0, 1, 0]])
    assert data.y.tolist() == ["poor", "good", "good"]
    assert data.dropped_rows == 2
    assert load_dataset("paint", "table").feature_names[1:] == (
        "the colour=green",
        "the colour=red",
    )


def test_a_damaged_cache_is_fetched_again(server, tmp_path):
    load_dataset("paint")
    (tmp_path / "cache" / "openml" / "77.arff").write_text("@RELATION rubbish")
    assert len(load_dataset("paint").y) == 3
    assert len(server.asked) == 4


@pytest.mark.parametrize(
    ("arff", "changes", "sentence"),
    [
        (ARFF, {"md5_checksum": "0" * 32}, r"'paint' from OpenML \(id 77\) arrived damaged"),
        (ARFF, {"version": "3"}, "version 3 of 'paint', and version 2 was expected"),
        (ARFF + "4.0,red,good\n", {}, "is not the paper's 'paint': it has 4 complete rows"),
        (
            "@RELATION x\n@ATTRIBUTE a {p,q}\n@DATA\nr\n",
            {},
            "the ARFF file of data set 'paint' cannot be read",
        ),
        (
            "@RELATION x\n@ATTRIBUTE a STRING\n@DATA\n'p'\n",
            {},
            "the ARFF file of data set 'paint' cannot be read: String attributes",
        ),
    ],
)
def test_what_is_not_the_set_of_the_paper_is_refused(server, tmp_path, arff, changes, sentence):
    server.offer(arff, **changes)
    with pytest.raises(ValueError, match=sentence):
        load_dataset("paint")
    assert "md5_checksum" not in changes or not list(tmp_path.rglob("*.arff"))


@pytest.mark.parametrize(
    ("path", "status", "sentence", "asked"),
    [
        ("/api/v1/json/data/77", 404, r"\(id 77: .*404.*set SOFTSPLIT_DATA to a folder", 1),
        ("/data/paint.arff", 503, r"could not be fetched from OpenML.*503", 3),  # asked again
    ],
)
def test_a_server_that_fails_says_what_to_do(server, path, status, sentence, asked):
    server.answers[path] = (status, b"")
    with pytest.raises(FileNotFoundError, match=sentence):
        load_dataset("paint")
    assert server.asked.count(path) == asked


def test_no_network_says_what_to_do(server, monkeypatch):
    monkeypatch.setenv("SOFTSPLIT_OPENML", "http://127.0.0.1:9")
    with pytest.raises(FileNotFoundError, match=r"check the network, or set SOFTSPLIT_DATA"):
        load_dataset("paint")
