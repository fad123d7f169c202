"""The keys that clients must send, if there are any."""

from __future__ import annotations

import hmac
import os
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

from starlette.requests import HTTPConnection

from transformer_mt.errors import TmtError, at
from transformer_mt.files.lines import check_exists, read_lines
from transformer_mt.reporting.notes import note
from transformer_mt.serving.limits import RequestError

_OTHERS = 0o077  # permissions of the group and of all users
_ONE_KEY = "Write one key on each line, for example the output of:  openssl rand -hex 24"


class Keys:
    """The accepted keys. Without any, every request is accepted."""

    def __init__(self, keys: Iterable[str] = ()) -> None:
        self._digests = [_digest(key) for key in keys]

    def __bool__(self) -> bool:
        return bool(self._digests)

    def check(self, connection: HTTPConnection, given: str | None = None) -> None:
        """given: in the body; it counts as much as the header `Authorization: Bearer KEY`. Raises RequestError."""
        if not self._digests:
            return
        scheme, _, key = connection.headers.get("authorization", "").partition(" ")
        sent = [_digest(one) for one in (given, key.strip() if scheme.lower() == "bearer" else None) if one is not None]
        if not sent:
            raise RequestError(
                403, "this server needs an API key: send the header Authorization: Bearer KEY, or api_key"
            )
        # Digests have one length, and all of them are compared: the time says nothing about a key.
        if not sum(hmac.compare_digest(digest, one) for digest in sent for one in self._digests):
            raise RequestError(403, "this API key is not valid here")


def _digest(key: str) -> bytes:
    return sha256(key.encode("utf-8", "replace")).digest()


def read_keys(file: Path | None) -> Keys:
    """The keys in a file, one on each line; lines that begin with # are comments. A note says if others can read it.

    Raises TmtError if the file is missing or has no key, or if a key has white space.
    """
    if file is None:
        return Keys()
    check_exists(file)
    keys = []
    for number, line in read_lines(file, any_text=True):
        key = line.strip()
        if not key or key.startswith("#"):
            continue
        if len(key.split()) > 1 or not key.isascii():
            problem = "a key has white space, or letters that are not ASCII"
            raise TmtError(problem, place=at(file, number), remedy=_ONE_KEY)
        keys.append(key)
    if not keys:
        raise TmtError("no key in this file", place=file, remedy=_ONE_KEY)
    if os.name == "posix" and file.stat().st_mode & _OTHERS:
        note(f"{file} can be read by other users; make it private:  chmod 600 {file}")
    return Keys(keys)
