"""Files at addresses: read as a local file is, after lost connections too, and each failure is one message."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import pickle
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest

from transformer_mt.config.load import dump_config
from transformer_mt.config.schema import Config
from transformer_mt.data.prepare import prepare
from transformer_mt.errors import TmtError
from transformer_mt.files import address
from transformer_mt.files.address import Address, addresses_like, is_address
from transformer_mt.files.lines import path_of, read_lines
from transformer_mt.files.receiving import RetryPolicy
from transformer_mt.files.remote import open_address

pytest.importorskip("aiohttp", reason="needs the package aiohttp, for https:// addresses")
Host = Any  # of conftest.py
TRIES = 3
ROWS = [(f"der Satz {number} hier", f"the sentence {number} here") for number in range(400)]
TABLE = "".join(f"{source}\t{target}\n" for source, target in ROWS).encode()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(address, "retries", RetryPolicy(tries=TRIES, pause=0.0, connect=0.5, read=0.3))


@pytest.fixture
def memory() -> Iterator[Any]:
    """The file system `memory://`, empty before and after."""
    files = fsspec.filesystem("memory")
    files.store.clear()
    yield files
    files.store.clear()


def _config(folder: Path, corpus: Any, **data: Any) -> Config:
    return Config.model_validate(
        {
            "name": "elsewhere",
            "data": {
                "source": "de",
                "target": "en",
                "corpus": corpus,
                "prepared": str(folder),
                "workers": 1,
                "cleaning": {"language": "off"},
                **data,
            },
            "tokenizer": {"kind": "whitespace", "min_frequency": 1},
            "training": {"max_epochs": 1},
        }
    )


def _lines(place: str) -> list[str]:
    return [text for _, text in read_lines(Address(place))]


def _error(place: str) -> TmtError:
    with pytest.raises(TmtError) as caught:
        _lines(place)
    return caught.value


EXPECTED = TABLE.decode().splitlines()

# Reading


@pytest.mark.parametrize("ranges", [True, False])
@pytest.mark.parametrize("breaks", [[], [5], [7, 7], [100, 5, 2_000]])
def test_lines_are_complete_after_lost_connections(host: Host, ranges: bool, breaks: list[int]) -> None:
    host.files["table.tsv.gz"], host.supports_ranges, host.breaks = gzip.compress(TABLE), ranges, list(breaks)
    assert _lines(f"{host.address}/table.tsv.gz?id=5") == EXPECTED  # compressed by its suffix, before the query
    assert not host.breaks


@pytest.mark.parametrize("status", [500, 503, 429])
def test_a_busy_server_is_tried_again_a_limited_number_of_times(host: Host, status: int) -> None:
    host.files["table.tsv"], busy = TABLE, [(status, "text/plain", b"")]
    host.answers = busy * (TRIES - 1)
    assert _lines(f"{host.address}/table.tsv") == EXPECTED
    host.answers = busy * TRIES
    error = _error(f"{host.address}/table.tsv")
    assert error.message == f"the server answers HTTP {status}; gave up after {TRIES} tries"
    assert not host.answers


def test_a_server_that_ignores_ranges_and_does_not_say_so_is_read_to_the_end(host: Host) -> None:
    content = bytes(range(256)) * 1_000
    host.files["data"] = content
    with open_address(Address(f"{host.address}/data")) as stream:
        first = stream.read(1_000)
        host.supports_ranges = False
        stream.seek(200_000)
        assert (first, stream.read()) == (content[:1_000], content[200_000:])


# Failures: one message with the address


def test_a_missing_a_forbidden_and_an_unreachable_file(host: Host, memory: Any) -> None:
    assert "no file at this address" in _error(f"{host.address}/none.tsv").message
    assert "no file at this address" in _error("memory://none.tsv").message
    host.files["table.tsv"], host.forbids = TABLE, True
    forbidden = _error(f"{host.address}/table.tsv")
    assert forbidden.message == "reading this is not allowed (HTTP 403)"
    assert "credentials" in forbidden.remedy
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    away = _error(f"http://127.0.0.1:{port}/table.tsv")
    assert away.message.endswith(f"gave up after {TRIES} tries")
    assert away.place == f"http://127.0.0.1:{port}/table.tsv"


def test_a_silent_server_times_out(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.files["table.tsv"], host.breaks, host.stalls = TABLE, [10] * TRIES, True
    assert _error(f"{host.address}/table.tsv").message == f"no answer in time; gave up after {TRIES} tries"


def test_a_shard_that_was_cut_off_is_incomplete(host: Host, memory: Any, tmp_path: Path) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    host.files["table.tsv.gz"] = gzip.compress(TABLE)[:-9]
    error = _error(f"{host.address}/table.tsv.gz")
    assert error.message == "the file is incomplete: its end is missing"
    assert error.place.startswith(f"{host.address}/table.tsv.gz:")
    whole = io.BytesIO()
    parquet.write_table(pyarrow.table({"source": ["eins"], "target": ["one"]}), whole)
    memory.pipe("/a.parquet", whole.getvalue()[:-10])
    with pytest.raises(TmtError, match="not a Parquet file, or damaged"):
        prepare(_config(tmp_path, {"kind": "parquet", "files": "memory://a.parquet"}))


def test_an_empty_file_and_a_web_page_are_refused(host: Host) -> None:
    host.files |= {"empty.tsv": b"", "login.tsv.gz": b"<!DOCTYPE html><html>Log in</html>"}
    assert _error(f"{host.address}/empty.tsv").message == "the file is empty"
    assert "web page" in _error(f"{host.address}/login.tsv.gz").message


def test_a_file_that_is_changed_while_it_is_read_is_an_error(host: Host) -> None:
    host.files["table.tsv"] = TABLE
    lines = read_lines(Address(f"{host.address}/table.tsv"))
    next(lines)
    host.files["table.tsv"] = TABLE.replace(b"1", b"2")
    with pytest.raises(TmtError, match="changed while it was read"):
        list(lines)


@pytest.mark.parametrize(
    ("place", "package"),
    [("s3://b/x.tsv", "s3fs"), ("gs://b/x.tsv", "gcsfs"), ("hf://datasets/a/b", "huggingface_hub")],
)
def test_a_missing_package_is_named(place: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(address, "DEFAULT_RETRIES", address.retries)
    monkeypatch.setitem(__import__("sys").modules, package, None)
    assert _error(place).remedy == f"Run  pip install {package}"


def test_an_unknown_protocol_and_an_address_in_place_of_a_path_are_errors(tmp_path: Path) -> None:
    assert "not an address" in _error("gopher://host/x.tsv").message
    with pytest.raises(TmtError, match="a path on this machine is needed"):
        path_of("s3://bucket/model")
    assert path_of(f"file://{tmp_path}/a%20b") == tmp_path / "a b"
    assert not is_address(f"file://{tmp_path}/x.tsv")


# Checksums


@pytest.mark.parametrize("skip", [0, 50])  # after a jump, what was jumped over is read for the checksum
def test_a_checksum_covers_the_whole_file(host: Host, skip: int) -> None:
    host.files["table.tsv"] = TABLE
    file = Address(f"{host.address}/table.tsv")
    for file.sha256 in (hashlib.sha256(TABLE).hexdigest(), "0" * 64):

        def read() -> bytes:
            with open_address(file) as stream:
                stream.seek(skip)
                return stream.read(10)

        if file.sha256 != "0" * 64:
            assert read() == TABLE[skip : skip + 10]
        else:
            with pytest.raises(TmtError, match=f"its sha256 is {hashlib.sha256(TABLE).hexdigest()}"):
                read()


@pytest.mark.parametrize("where", ["disk", "memory"])
def test_the_config_can_have_checksums(where: str, memory: Any, tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_bytes(TABLE)
    memory.pipe("/a.tsv", TABLE)
    file = str(tmp_path / "a.tsv") if where == "disk" else "memory://a.tsv"
    corpus, right = {"kind": "tsv", "files": file}, hashlib.sha256(TABLE).hexdigest()
    prepared = prepare(_config(tmp_path / "data", {**corpus, "sha256": right}))
    assert [one.sha256 for one in prepared.manifest.files] == [right]
    for wrong, message in (("1" * 64, f"its sha256 is {right}"), ([right, right], "2 checksums for 1 files")):
        with pytest.raises(TmtError, match=message):
            prepare(_config(tmp_path / "data", {**corpus, "sha256": wrong}))
    assert prepare(_config(tmp_path / "data", {**corpus, "sha256": right})).is_new is False  # it was kept


# Patterns


def test_a_pattern_is_sorted_and_an_empty_one_is_an_error(memory: Any, host: Host) -> None:
    for name in ("b", "a", "c"):
        memory.pipe(f"/shards/{name}.tsv", b"x")
    memory.pipe("/shards/inside/d.tsv", b"x")
    assert [*map(str, addresses_like("memory://shards/*.tsv"))] == [f"memory://shards/{name}.tsv" for name in "abc"]
    assert [one.name for one in addresses_like("memory://shards/**/*.tsv")] == ["a.tsv", "b.tsv", "c.tsv", "d.tsv"]
    assert [one.name for one in addresses_like("memory://shards/[ab].tsv")] == ["a.tsv", "b.tsv"]
    with pytest.raises(TmtError, match="no file has a name like this") as caught:
        addresses_like("memory://shards/*.csv")
    assert caught.value.place == "memory://shards/*.csv"
    host.files["list/"] = b'<a href="b.tsv">b</a> <a href="a.tsv">a</a> <a href="../">up</a>'
    names = [str(one) for one in addresses_like(f"{host.address}/list/*.tsv")]
    assert names == [f"{host.address}/list/a.tsv", f"{host.address}/list/b.tsv"]


def test_files_of_both_languages_are_paired_by_name(memory: Any, tmp_path: Path) -> None:
    for part, rows in (("1", ROWS[:200]), ("2", ROWS[200:])):
        memory.pipe(f"/c/part-{part}.de", "".join(f"{source}\n" for source, _ in rows).encode())
        memory.pipe(f"/c/part-{part}.en.gz", gzip.compress("".join(f"{target}\n" for _, target in rows).encode()))
    by_pattern = {"source": "memory://c/part-*.de", "target": "memory://c/part-*.en.gz"}
    tables = [
        prepare(_config(tmp_path / str(number), {"kind": "text", "files": files})).manifest.splits
        for number, files in enumerate((by_pattern, "memory://c"))
    ]
    assert tables[0] == tables[1]
    assert sum(tables[0].values()) == len(ROWS)
    memory.rm("/c/part-2.en.gz")
    with pytest.raises(TmtError, match=r"files without a partner in the other language: memory://c/part-2\.de"):
        prepare(_config(tmp_path / "0", {"kind": "text", "files": by_pattern}))


# Prepared data


def _bytes(folder: Path) -> dict[str, bytes]:
    files = (file for file in folder.rglob("*") if file.is_file() and file.name != "manifest.json")
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


@pytest.mark.parametrize("kind", ["tsv", "jsonl", "parquet", "xlsx"])
def test_prepared_data_is_that_of_local_files_and_known_again(
    kind: str, host: Host, memory: Any, tmp_path: Path
) -> None:
    content = _written(kind)
    local = tmp_path / f"a.{kind}"
    local.write_bytes(content)
    memory.pipe(f"/a.{kind}", content)
    host.files[f"a.{kind}"] = content
    columns = {} if kind == "tsv" else {"source_column": "source", "target_column": "target"}

    def made(place: object, name: str) -> Any:
        return prepare(_config(tmp_path / name, {"kind": kind, "files": str(place), **columns}))

    expected = _bytes(made(local, "local").folder)
    for name, place in (("memory", f"memory://a.{kind}"), ("web", f"{host.address}/a.{kind}")):
        assert _bytes(made(place, name).folder) == expected
        assert not made(place, name).is_new
    host.files[f"a.{kind}"] = _written(kind, ROWS[:300])
    assert made(f"{host.address}/a.{kind}", "web").is_new


def _written(kind: str, rows: list[tuple[str, str]] = ROWS) -> bytes:
    stream = io.BytesIO()
    if kind == "tsv":
        stream.write("".join(f"{source}\t{target}\n" for source, target in rows).encode())
    elif kind == "jsonl":
        stream.writelines(json.dumps({"source": one, "target": two}).encode() + b"\n" for one, two in rows)
    elif kind == "parquet":
        pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        sources, targets = zip(*rows, strict=True)
        parquet.write_table(pyarrow.table({"source": sources, "target": targets}), stream)
    else:
        from openpyxl import Workbook

        book = Workbook()
        for row in [("source", "target"), *rows]:
            book.active.append(row)
        book.save(stream)
    return stream.getvalue()


SECRETS = ("hunter2", "s3cr3t")


def test_passwords_and_signatures_are_never_shown_or_stored(host: Host, tmp_path: Path) -> None:
    host.files["a.tsv"] = TABLE
    place = host.address.replace("://", "://me:hunter2@") + "/a.tsv?X-Signature=s3cr3t&id=5"
    config = _config(tmp_path / "data", {"kind": "tsv", "files": place})
    prepared = prepare(config)
    stored = b"".join(file.read_bytes() for file in prepared.folder.rglob("*") if file.is_file())
    host.forbids = True
    with pytest.raises(TmtError) as caught:
        prepare(config, force=True)
    for text in (stored.decode("latin-1"), str(caught.value), dump_config(config), repr(Address(place))):
        assert not any(secret in text for secret in SECRETS)
    assert str(caught.value).startswith(f"{host.address.replace('://', '://***@')}/a.tsv?***: ")
    assert pickle.loads(pickle.dumps(Address(place))).address == place  # workers read it


# Weights


def test_a_temperature_weighs_corpora_by_their_sizes(memory: Any, tmp_path: Path) -> None:
    memory.pipe("/large.tsv", _written("tsv", ROWS[:320]))
    memory.pipe("/small.tsv", _written("tsv", ROWS[320:340]))
    split = {"validation": 0, "test": 0}
    corpora = [
        {"kind": "tsv", "files": "memory://large.tsv", "split": {"validation": 10, "test": 10}},
        {"kind": "tsv", "files": "memory://small.tsv", "split": split},
    ]
    parts = {t: prepare(_config(tmp_path / "data", corpora, temperature=t)).parts for t in (None, 1.0, 2.0, 100.0)}
    assert parts[None] == parts[1.0] == [(300, 1.0), (20, 1.0)]
    seen = [pairs * weight for pairs, weight in parts[2.0]]
    assert sum(seen) == pytest.approx(320)
    assert seen[0] / seen[1] == pytest.approx((300 / 20) ** 0.5)
    assert [pairs * weight for pairs, weight in parts[100.0]] == pytest.approx([160, 160], rel=0.02)
    with pytest.raises(ValueError, match="remove `weight` of corpus 2, or `temperature`"):
        _config(tmp_path / "data", [corpora[0], {**corpora[1], "weight": 2.0}], temperature=2.0)
