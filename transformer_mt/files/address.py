"""Addresses of files that are not on this machine, such as `s3://bucket/part-1.tsv.gz`. fsspec knows how to read them.

Files are streamed and never copied to the disk: a corpus may be larger than it, and `prepare` reads each file once.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator
from functools import cached_property
from glob import has_magic
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from transformer_mt.errors import TmtError, reason, without_credentials
from transformer_mt.files.folder import is_hidden
from transformer_mt.files.receiving import DEFAULT_RETRIES

Result = TypeVar("Result")
_PROTOCOL = r"[a-zA-Z][a-zA-Z0-9+.-]+"  # the letter of a disk is shorter
_ADDRESS = re.compile(rf"(?!file://|local://){_PROTOCOL}(::{_PROTOCOL})*://")
_QUERY = re.compile(r"\?[\w.%-]+=.*$")
_SIGNED = re.compile("sig|token|key|cred|expires|secret|auth|policy|pass", re.IGNORECASE)
_WEB = re.compile("https?://")
_PACKAGES = {  # that fsspec needs for a protocol
    **dict.fromkeys(("s3", "s3a"), "s3fs"),
    **dict.fromkeys(("gs", "gcs"), "gcsfs"),
    **dict.fromkeys(("http", "https"), "aiohttp"),
    **dict.fromkeys(("az", "abfs", "abfss", "adl"), "adlfs"),
    **dict.fromkeys(("sftp", "ssh"), "paramiko"),
    "hf": "huggingface_hub",
}
_MARKS = (  # what a store says about the version of a file
    *("ETag", "etag", "Content-MD5", "Digest", "md5Hash", "crc32c", "generation", "VersionId", "blob_id"),
    *("LastModified", "Last-Modified", "last_modified", "updated", "modified", "mtime", "created"),
)
_MISSING, _FORBIDDEN, _WORTH_A_TRY = (404, 410), (401, 403, 407), (408, 425, 429)  # statuses of HTTP
retries = DEFAULT_RETRIES
_CREDENTIALS = (
    "Give the credentials in the way of the store, never in the config: environment variables such as"
    " AWS_ACCESS_KEY_ID, `gcloud auth application-default login`, or `hf auth login`."
)


class Status(NamedTuple):
    """size: in bytes; None: the server does not say. version: its entity tag, times and checksums, if there are any."""

    size: int | None
    version: str


if TYPE_CHECKING:
    _Base = Path
else:
    _Base = object


class Address(_Base):
    """A file at an address, where readers of corpora have a `Path`.

    A type checker sees a Path. Here, it has only what these readers use, and anything else is an AttributeError: a Path
    would be the name of another file. As text it is without passwords.
    sha256: that its bytes must have, or None
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self.sha256: str | None = None

    def __str__(self) -> str:
        return without_credentials(self.address)

    def __repr__(self) -> str:
        return f"Address('{self}')"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Address) and other.address == self.address

    def __hash__(self) -> int:
        return hash(self.address)

    def __truediv__(self, name: Any) -> Address:
        return Address(f"{self.address.rstrip('/')}/{name}")

    def sibling(self, path: str) -> Address:
        """The address of a path as fsspec gives it, in the same store."""
        parts = self.address.split("::")
        changed = next((n for n, part in enumerate(parts) if is_pattern(part)), len(parts) - 1)
        protocol, _, own = parts[changed].partition("://")
        query = _QUERY.search(own)
        inside = path.partition("://")[2] or path
        inside = inside if own.startswith("/") else inside.lstrip("/")
        parts[changed] = f"{protocol}://{inside}{query[0] if query else ''}"
        return Address("::".join(parts))

    @property
    def plain(self) -> str:
        """Without the query."""
        return _QUERY.sub("", self.address)

    @property
    def identity(self) -> tuple[str, int | None, str]:
        """What a fingerprint covers: the address without passwords and signatures, size and version."""
        query = _QUERY.search(self.address)
        signed = query is None or _SIGNED.search(query[0])
        return (str(self) if signed else f"{self}{query and query[0]}", *self.status)

    @property
    def name(self) -> str:
        return self.plain.rstrip("/").rpartition("/")[2]

    @property
    def suffix(self) -> str:
        return PurePosixPath(self.name).suffix

    @property
    def parents(self) -> Any:
        return ()

    def is_file(self, **options: Any) -> bool:
        """False: it is not a file on this machine, and cannot be cut into ranges."""
        return False

    def is_dir(self, **options: Any) -> bool:
        return False

    def is_fifo(self) -> bool:
        return False

    @cached_property
    def status(self) -> Status:
        """Its size and version when it was first looked at. Raises TmtError if it cannot be read."""
        return self._look()

    def check(self) -> None:
        """Raises TmtError if there is no such file, or it cannot be read."""
        _ = self.status

    def require_unchanged(self) -> None:
        """Raises TmtError if it is not what `status` says any more."""
        if self._look() != self.status:
            raise changed_error(self)

    def _look(self) -> Status:
        def look() -> dict[str, Any]:
            system, path = filesystem(self.address)
            system.invalidate_cache(path)
            found: dict[str, Any] = system.info(path)
            return found

        found = patiently(self, look)
        if found.get("type") == "directory":
            raise TmtError(
                "this is a folder, not a file", place=str(self), remedy="Give the file inside it, or a pattern."
            )
        marks = [f"{name} {found[name]}" for name in _MARKS if found.get(name)]
        return Status(found.get("size"), ", ".join(marks))


def changed_error(file: Path) -> TmtError:
    """The error for a file that was written while it was read."""
    remedy = "Run the same command again when nobody writes it."
    return TmtError("the file was changed while it was read", place=file, remedy=remedy)


def identity_of(file: Path) -> tuple[str, int | None, int | str]:
    """What tells versions of a file apart without reading it: its name, size, and time or version."""
    if isinstance(file, Address):
        return file.identity
    status = file.stat()
    return str(file), status.st_size, status.st_mtime_ns


def is_address(given: object) -> bool:
    """Whether a text is an address that fsspec reads; `file://` is a path on this machine."""
    return isinstance(given, str) and _ADDRESS.match(given) is not None


def addresses_like(pattern: str) -> list[Address]:
    """The file at an address; or all that match its `*`, `**` and `[...]`, and its `?` unless a query follows, sorted.

    Raises TmtError if it cannot be read, or is a pattern that no file matches.
    """
    if not is_pattern(pattern):
        return [Address(pattern)]
    place = Address(pattern)

    def listed() -> list[str]:
        system, path = filesystem(pattern)
        system.invalidate_cache()
        found = system.glob(path, detail=True).items()
        return sorted(name for name, facts in found if facts.get("type") != "directory")

    names = patiently(place, listed)
    if not names:
        raise TmtError("no file has a name like this", place=place, remedy="Check the pattern and the credentials.")
    return [place.sibling(name) for name in names]


def is_pattern(name: str) -> bool:
    """Whether a path or an address stands for several files; `?` begins the query of an address on the web."""
    plain = _QUERY.sub("", name) if is_address(name) else name
    return has_magic(
        re.sub(r"(?<=:)//.*", lambda found: found[0].replace("?", ""), plain) if _WEB.match(name) else plain
    )


def names_in(folder: Address) -> list[str]:
    """The names of all files in a folder and its folders, sorted. Raises TmtError if it cannot be read."""

    def listed() -> list[str]:
        system, path = filesystem(folder.address)
        system.invalidate_cache()
        inside = (str(PurePosixPath(name).relative_to(path)) for name in system.find(path))
        return sorted(name for name in inside if not is_hidden(PurePosixPath(name)))

    return patiently(folder, listed)


def filesystem(address: str) -> tuple[Any, str]:
    """The file system of fsspec for an address, and the path in it. Raises TmtError without the package it needs."""
    import fsspec

    protocols = re.findall(rf"({_PROTOCOL})(?=::|://)", address)
    options = {protocol: _http_options() for protocol in protocols if protocol in ("http", "https")}
    try:
        found: tuple[Any, str] = fsspec.url_to_fs(address, **options)
        return found
    except ImportError as error:
        package = next((_PACKAGES[one] for one in protocols if one in _PACKAGES), None)
        install = f"Run  pip install {package}" if package else f"Install it: {reason(error)}."
        raise TmtError(
            f"{protocols[0]}:// addresses need a package that is missing", place=Address(address), remedy=install
        ) from None
    except ValueError as error:
        remedy = "Use s3://, gs://, hf://, https:// or another address that fsspec knows, or a path."
        raise TmtError(f"not an address ({reason(error)})", place=Address(address), remedy=remedy) from None


def _http_options() -> dict[str, Any]:
    try:
        from aiohttp import ClientTimeout
    except ImportError:
        return {}  # fsspec says it
    seconds = ClientTimeout(total=None, sock_connect=retries.connect, sock_read=retries.read)
    return {
        "client_kwargs": {"timeout": seconds, "trust_env": True},  # proxies
        "headers": {"Accept-Encoding": "identity"},  # keeps a .gz compressed
    }


def patiently(file: Address, do: Callable[[], Result]) -> Result:
    """What `do` returns. If it fails and may not fail again, it is tried again after a pause.

    Raises TmtError if there is no such file, reading it is not allowed, or all tries have failed.
    """
    for failures in range(1, retries.tries + 1):
        try:
            return do()
        except TmtError:
            raise
        except Exception as error:  # each store has its own classes
            final = _final(file, error)
            if final is not None:
                raise final from None
            if failures == retries.tries:
                remedy = "Check the address and the connection, and run the same command again. Nothing was changed."
                raise TmtError(f"{_said(error)}; gave up after {failures} tries", place=file, remedy=remedy) from None
            seconds = retries.pause * 2 ** (failures - 1)
            print(f"{file}: {without_credentials(_said(error))}; trying again in {seconds:g} s", file=sys.stderr)
        time.sleep(seconds)
    raise AssertionError("a policy has at least one try")


def _final(file: Address, error: Exception) -> TmtError | None:
    """The error if another try cannot help."""
    causes = list(_causes(error))
    status = next((code for code in map(_status_of, causes) if code is not None), None)
    lacks_credentials = "credentials" in type(error).__name__.lower()
    if status in _FORBIDDEN or any(isinstance(one, PermissionError) for one in causes) or lacks_credentials:
        said = f"HTTP {status}" if status else reason(error)
        return TmtError(f"reading this is not allowed ({said})", place=file, remedy=_CREDENTIALS)
    is_missing = isinstance(error, FileNotFoundError) and len(causes) == 1
    if status in _MISSING or (status is None and is_missing):
        return TmtError("there is no file at this address", place=file, remedy="Check the address.")
    if status is not None and status < 500 and status not in _WORTH_A_TRY:
        return TmtError(f"the server refuses the request (HTTP {status})", place=file, remedy="Check the address.")
    return None


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _status_of(error: BaseException) -> int | None:
    """The status of HTTP in an error of aiohttp, gcsfs, huggingface_hub or botocore."""
    response = getattr(error, "response", None)
    if isinstance(response, dict):
        response = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    of_google = type(error).__module__.startswith("gcsfs")  # the `code` of aiohttp is not that of an answer
    for name in ("status", "status_code", *(("code",) if of_google else ())):
        found = getattr(error, name, None) or getattr(response, name, None) or response
        if isinstance(found, int) and 400 <= found < 600:
            return found
    return None


def _said(error: Exception) -> str:
    """The most specific cause, in the words of the library."""
    innermost = list(_causes(error))[-1]
    status = _status_of(innermost)
    if status is not None:
        return f"the server answers HTTP {status}"
    if isinstance(innermost, TimeoutError) or "timeout" in type(innermost).__name__.lower():
        return "no answer in time"
    return f"the connection failed ({reason(innermost)})"
