"""Downloads from a local server that closes connections, ignores ranges, sends web pages, or works."""

from __future__ import annotations

import gzip
import hashlib
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from transformer_mt.cli.download import download
from transformer_mt.corpora import multi30k
from transformer_mt.corpora.multi30k import Multi30kCorpus
from transformer_mt.errors import TmtError
from transformer_mt.files import receiving
from transformer_mt.files.download import fetch
from transformer_mt.files.receiving import MissingError, RetryPolicy

pytestmark = pytest.mark.slow

DATA = hashlib.sha512(b"seed").digest() * 4_000  # 256,000 bytes
SUM = hashlib.sha256(DATA).hexdigest()
QUICK = RetryPolicy(tries=3, pause=0.0, connect=2.0, read=0.5)


Host = Any  # of conftest.py


@pytest.fixture
def host(host: Host) -> Host:
    host.files["data.gz"] = DATA
    return host


def _fetch(base: str, file: Path, sha256: str = SUM, retries: RetryPolicy = QUICK) -> bool:
    return fetch(base, file, sha256, remedy="try the mirror", retries=retries)


def _error(base: str, file: Path, sha256: str = SUM) -> TmtError:
    with pytest.raises(TmtError) as caught:
        _fetch(base, file, sha256)
    assert not file.exists()
    assert caught.value.exit_code == 2
    return caught.value


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "new" / "data.gz"


def _files_beside(file: Path) -> list[str]:
    return sorted(path.name for path in file.parent.iterdir() if path.name != ".lock")


def test_a_download_is_complete_and_leaves_no_other_files(host: Host, file: Path) -> None:
    assert _fetch(host.address, file)
    assert file.read_bytes() == DATA
    assert _files_beside(file) == ["data.gz"]


@pytest.mark.parametrize("terminal", ["xterm", "dumb"])
def test_a_dumb_terminal_gets_no_bar(
    host: Host, file: Path, terminal: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", terminal)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert _fetch(host.address, file)
    assert ("256k" in capsys.readouterr().err) == (terminal == "xterm")


def test_an_existing_file_is_verified_and_not_downloaded_again(host: Host, file: Path) -> None:
    assert _fetch(host.address, file)
    assert not _fetch(host.address, file)
    assert len(host.requests) == 1


def test_an_interrupted_download_continues_where_it_stopped(host: Host, file: Path) -> None:
    host.breaks = [1_000, 50_000]
    assert _fetch(host.address, file)
    assert [wanted for _, wanted in host.requests] == ["", "bytes=1000-", "bytes=51000-"]
    assert file.read_bytes() == DATA


def test_a_download_with_many_interruptions_succeeds_if_it_advances(host: Host, file: Path) -> None:
    host.breaks = [20_000] * 12
    assert _fetch(host.address, file)
    assert len(host.requests) == 13


def test_a_later_run_continues_an_earlier_download(host: Host, file: Path) -> None:
    host.breaks = [70_000, 0, 0]
    error = _error(host.address, file)
    assert "70,000 bytes" in error.message
    assert _files_beside(file) == ["data.gz.part"]
    host.requests.clear()
    assert _fetch(host.address, file)
    assert host.requests == [("/data.gz", "bytes=70000-")]


def test_a_second_download_waits_for_the_first(host: Host, file: Path) -> None:
    host.breaks, host.stalls = [100_000], True
    with ThreadPoolExecutor(2) as pool:
        retries = RetryPolicy(tries=3, pause=0.0, connect=2.0, read=1.0)
        one, other = (pool.submit(_fetch, host.address, file, SUM, retries) for _ in range(2))
        assert {one.result(20), other.result(20)} == {True}, "one downloads, the other waits"
    assert file.read_bytes() == DATA
    assert [wanted for _, wanted in host.requests] == ["", "bytes=98304-"], "one download, which keeps its bytes"
    assert _files_beside(file) == ["data.gz"]


def test_a_server_without_ranges_sends_the_whole_file_again(host: Host, file: Path) -> None:
    host.supports_ranges, host.breaks = False, [1_000, 2_000]
    assert _fetch(host.address, file)
    assert file.read_bytes() == DATA


@pytest.mark.parametrize("beginning", [b"other" * 100, DATA + b"more", DATA[:-1] + b"?"])
def test_the_partial_download_of_another_file_is_discarded(host: Host, file: Path, beginning: bytes) -> None:
    file.parent.mkdir()
    file.with_name("data.gz.part").write_bytes(beginning)
    assert _fetch(host.address, file)
    assert file.read_bytes() == DATA
    assert _files_beside(file) == ["data.gz"]


def test_a_complete_part_only_gets_its_name(host: Host, file: Path) -> None:
    file.parent.mkdir()
    file.with_name("data.gz.part").write_bytes(DATA)
    assert _fetch(host.address, file)
    assert len(host.requests) == 1


def test_a_silent_server_times_out(host: Host, file: Path) -> None:
    host.breaks, host.stalls = [10_000], True
    assert _fetch(host.address, file)
    assert [wanted for _, wanted in host.requests] == ["", f"bytes={receiving._BLOCK}-"]


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_server_is_tried_again_a_limited_number_of_times(host: Host, file: Path, status: int) -> None:
    busy = (status, "text/plain", b"later")
    host.answers = [busy, busy]
    assert _fetch(host.address, file)
    file.unlink()
    host.answers = [busy] * 3
    error = _error(host.address, file)
    assert f"HTTP {status}" in error.message
    assert error.remedy == "try the mirror"


def test_a_missing_file_is_not_tried_again(host: Host, file: Path) -> None:
    with pytest.raises(MissingError) as caught:
        _fetch(f"{host.address}/elsewhere/", file)
    assert "404" in caught.value.message
    assert caught.value.place == f"{host.address}/elsewhere/data.gz"
    assert len(host.requests) == 1


def test_a_refused_request_is_reported(host: Host, file: Path) -> None:
    host.answers = [(403, "text/plain", b"no")]
    assert "403" in _error(host.address, file).message


@pytest.mark.parametrize("kind", ["text/html; charset=utf-8", "application/octet-stream"])
def test_a_web_page_instead_of_the_file_is_refused(host: Host, file: Path, kind: str) -> None:
    host.answers = [(200, kind, b"\n<!DOCTYPE html><html>domain for sale</html>")]
    error = _error(host.address, file)
    assert "web page" in error.message
    assert error.place == f"{host.address}/data.gz"
    assert _files_beside(file) == []


def test_a_wrong_checksum_is_refused(host: Host, file: Path) -> None:
    host.files["data.gz"] = DATA[:-1]
    error = _error(host.address, file)
    assert hashlib.sha256(DATA[:-1]).hexdigest() in error.message
    assert SUM in error.message
    assert _files_beside(file) == []


def test_a_damaged_file_on_the_disk_is_kept_and_reported(host: Host, file: Path) -> None:
    file.parent.mkdir()
    file.write_bytes(b"changed")
    with pytest.raises(TmtError, match="sha256") as caught:
        _fetch(host.address, file)
    assert caught.value.place == str(file)
    assert f"rm '{file}'" in caught.value.remedy
    assert file.read_bytes() == b"changed"
    assert host.requests == []


def test_a_closed_port_is_reported(file: Path) -> None:
    error = _error("http://127.0.0.1:9/none", file)  # nothing listens on the discard port
    assert "127.0.0.1:9" in error.message
    assert "refused" in error.message
    assert error.remedy == "try the mirror"


def test_an_unknown_host_is_reported(file: Path) -> None:
    assert "no-such-host.invalid" in _error("http://no-such-host.invalid", file).message


@pytest.mark.parametrize("base", ["ftp://example.org/x", "http://", "http://[bad"])
def test_invalid_addresses_are_refused(file: Path, base: str) -> None:
    assert base.rstrip("/") in str(_error(base, file))


@pytest.mark.parametrize("as_address", [False, True])
def test_a_file_is_copied_from_a_local_folder(tmp_path: Path, file: Path, as_address: bool) -> None:
    mirror = tmp_path / "my mirror"
    mirror.mkdir()
    base = mirror.as_uri() if as_address else str(mirror)
    with pytest.raises(MissingError):
        _fetch(base, file)
    (mirror / "data.gz").write_bytes(DATA[1:])
    assert "sha256" in _error(base, file).message
    (mirror / "data.gz").write_bytes(DATA)
    assert _fetch(base, file)
    assert file.read_bytes() == DATA
    assert _files_beside(file) == ["data.gz"]


def test_a_missing_local_folder_is_reported(tmp_path: Path, file: Path) -> None:
    assert "no such folder" in _error(str(tmp_path / "none"), file).message


def test_a_folder_that_cannot_be_written_is_reported(host: Host, tmp_path: Path) -> None:
    (tmp_path / "new").write_text("a file where the folder should be", encoding="utf-8")
    with pytest.raises(TmtError):
        _fetch(host.address, tmp_path / "new" / "data.gz")


# Multi30k


@pytest.fixture
def small_multi30k(host: Host, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A server with a file of one line under each official name, and matching checksums."""
    host.files = {name: gzip.compress(f"{name}\n".encode()) for name in multi30k.SUMS}
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in host.files.items()}
    monkeypatch.setattr(multi30k, "SUMS", sums)
    monkeypatch.setattr(receiving.time, "sleep", lambda _: None)
    return host


def _multi30k(folder: Path, mirror: str | None, **more: Any) -> Multi30kCorpus.Options:
    return Multi30kCorpus.Options(kind="multi30k", directory=str(folder), mirror=mirror, **more)


@pytest.mark.parametrize(("source", "target"), [("de", "en"), ("en", "de")])
def test_multi30k_downloads_the_files_of_its_splits(
    small_multi30k: Host, tmp_path: Path, source: str, target: str
) -> None:
    config = _multi30k(tmp_path, small_multi30k.address, test_sets=("test_2018_flickr",))
    corpus = Multi30kCorpus(config, source, target)
    corpus.fetch()
    assert corpus.split_config is None
    assert corpus.splits() == ("train", "validation", "test_2018_flickr")
    assert sorted(corpus.files()) == sorted(tmp_path.glob("*.gz"))
    read = {split: [(pair.source, pair.target) for pair in corpus.read(split)] for split in corpus.splits()}
    stems = {"train": "train", "validation": "val", "test_2018_flickr": "test_2018_flickr"}
    assert read == {split: [(f"{stem}.{source}.gz", f"{stem}.{target}.gz")] for split, stem in stems.items()}


def test_existing_multi30k_files_need_no_server(small_multi30k: Host, tmp_path: Path) -> None:
    for name, content in small_multi30k.files.items():
        (tmp_path / name).write_bytes(content)
    Multi30kCorpus(_multi30k(tmp_path, "http://127.0.0.1:9"), "de", "en").fetch()


def test_a_test_set_in_the_config_must_exist(small_multi30k: Host, tmp_path: Path) -> None:
    del small_multi30k.files["test_2018_flickr.en.gz"]
    corpus = Multi30kCorpus(_multi30k(tmp_path, small_multi30k.address, test_sets=("test_2018_flickr",)), "de", "en")
    with pytest.raises(MissingError) as caught:
        corpus.fetch()
    assert f"tmt download multi30k --to {tmp_path} --mirror" in caught.value.remedy
    assert "mirror" in caught.value.remedy


def test_the_known_checksums_cover_every_file() -> None:
    stems = ("train", "val", "test_2016_flickr", "test_2017_flickr", "test_2017_mscoco", "test_2018_flickr")
    assert set(multi30k.SUMS) == {f"{stem}.{language}.gz" for stem in stems for language in ("de", "en")}
    assert len(set(multi30k.SUMS.values())) == 12
    assert all(len(value) == 64 and int(value, 16) for value in multi30k.SUMS.values())


def test_the_command_downloads_everything_and_reports_on_stderr(
    small_multi30k: Host, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    download("multi30k", to=tmp_path, mirror=small_multi30k.address)
    first = capsys.readouterr()
    assert first.out == ""
    assert first.err.count("downloaded and verified") == 12
    assert set(_files_beside(tmp_path / "any")) == set(multi30k.SUMS)
    small_multi30k.requests.clear()
    download("multi30k", to=tmp_path, mirror=small_multi30k.address)
    again = capsys.readouterr().err
    assert again.count(": verified\n") == 12
    assert "already" in again
    assert small_multi30k.requests == []


def test_the_command_leaves_out_only_optional_test_sets(
    small_multi30k: Host, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    del small_multi30k.files["test_2017_mscoco.de.gz"]
    download("multi30k", to=tmp_path, mirror=small_multi30k.address)
    assert "test_2017_mscoco.de.gz: left out" in capsys.readouterr().err
    del small_multi30k.files["test_2017_flickr.de.gz"]
    with pytest.raises(MissingError):
        download("multi30k", to=tmp_path / "other", mirror=small_multi30k.address)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("aihub", "aihub.or.kr"),
        ("multi30", "did you mean 'multi30k'?"),
        ("phrasebook", "is part of tmt"),
        ("x", "unknown corpus"),
    ],
)
def test_the_command_says_how_to_get_other_corpora(name: str, expected: str) -> None:
    with pytest.raises(TmtError) as caught:
        download(name)
    assert expected in str(caught.value)


@pytest.mark.corpora
@pytest.mark.parametrize("over_http", [True, False])
def test_the_real_files_have_their_official_checksums(
    corpora: Path, host: Host, tmp_path: Path, over_http: bool
) -> None:
    folder = corpora / "multi30k"
    if not folder.is_dir():
        pytest.skip(f"no {folder}")
    host.files = {file.name: file.read_bytes() for file in folder.glob("*.gz")}
    host.breaks = [100_000, 200_000]
    corpus = Multi30kCorpus(_multi30k(tmp_path, host.address if over_http else str(folder)), "de", "en")
    corpus.fetch()
    counts = {split: sum(1 for _ in corpus.read(split)) for split in corpus.splits()}
    assert counts == {"train": 29_000, "validation": 1_014, "test_2016_flickr": 1_000, "test_2017_flickr": 1_000}
