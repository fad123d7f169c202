"""The nodes of a Ray cluster.

Ray repeats the work of a process or a node that is lost on another one. Nodes need the same version of this package,
and see the files of the corpus and the folder of prepared data: a shared folder with the same path, or addresses.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from transformer_mt import __version__
from transformer_mt.data.parallel import LostError, do_pickled
from transformer_mt.errors import TmtError, reason

REPEATS = 3  # of the work of a lost process or node
CONNECT = 10.0  # seconds
WAIT = 10.0  # seconds between two looks at the nodes while a result is awaited
_QUIET = {  # Ray sends nothing to the internet, and writes nothing to stdout; it reads these when it is imported
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",  # every line
}
_CHECK = "Check it with  ray status  and run the same command again. Nothing was changed."
_SHARE = "Nodes need the files under the same path: use a shared folder, or addresses such as s3://bucket/file."


class Failure(NamedTuple):
    """What the work on a node has raised. missing: whether the node does not have the file at `error.place`."""

    error: TmtError
    node: str
    missing: bool


class Cluster:
    """An `Executor` on a Ray cluster."""

    def __init__(self, address: str, number: int = 0) -> None:
        """number: of items that are worked on at the same time; 0: one per CPU of the cluster.

        Raises TmtError if Ray is not installed, the cluster does not answer, or it has no CPU.
        """
        os.environ.update(_QUIET)
        try:
            import ray
        except ImportError:
            remedy = "Run  pip install 'ray[client]'  here and on each node."
            raise TmtError("--cluster needs the package ray", remedy=remedy) from None
        self._ray: Any = ray
        self._is_ours = not ray.is_initialized()
        self._address = address
        if self._is_ours:
            self._connect(number)
        self.slots = number or self._cpus()
        if not self._cpus():
            self.close()
            raise TmtError("the cluster has no node with a CPU", place=address, remedy=_CHECK)
        is_client = address.startswith("ray://")
        self._head = address if is_client else ray.get_runtime_context().gcs_address
        self._do = ray.remote(num_cpus=1, max_retries=REPEATS)(_do_on_node)

    def _connect(self, number: int) -> None:
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        if self._address == "local":
            options |= {"include_dashboard": False, "num_cpus": number or None}
        try:
            _require_open(self._address)
            with _signals_kept():
                self._ray.init(self._address, **options)
        except (OSError, RuntimeError, ValueError, AssertionError) as error:  # Ray has no class for this
            remedy = (
                "Start a cluster with  ray start --head  or give its address: ray://host:10001. Both sides need the"
                " same versions of Python and Ray."
            )
            raise TmtError(f"no Ray cluster answers ({reason(error)})", place=self._address, remedy=remedy) from None

    def starter(self, pickled: bytes) -> Callable[[Any], Callable[[], Any]]:
        stored, folder = self._ray.put(pickled), os.getcwd()  # noqa: PTH109

        def start(item: Any) -> Callable[[], Any]:
            promised = self._do.remote(stored, item, folder, __version__)
            return lambda: self._result(promised)

        return start

    def require(self, paths: Sequence[Path]) -> None:
        """Raises TmtError with the name of the first node that does not see a file, or sees one of another size."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        sizes = [(str(path), path.stat().st_size if path.is_file() else None) for path in paths]
        look, folder = self._ray.remote(num_cpus=0, max_retries=REPEATS)(_first_unseen), os.getcwd()  # noqa: PTH109
        nodes = [node["NodeID"] for node in self._ray.nodes() if node["Alive"] and node["Resources"].get("CPU")]
        there = [NodeAffinitySchedulingStrategy(node_id=node, soft=False) for node in nodes]
        for promised in [look.options(scheduling_strategy=node).remote(sizes, folder) for node in there]:
            place, name = self._result(promised)
            if place:
                raise _unseen(name, place)

    def close(self) -> None:
        if self._is_ours:
            self._ray.shutdown()

    def _result(self, promised: Any) -> Any:
        lost = self._ray.exceptions
        while True:
            try:
                result = self._ray.get(promised, timeout=WAIT)
                break
            except lost.GetTimeoutError:
                self._require_head()
                if not self._cpus():
                    raise LostError("all nodes of the cluster are lost", place=self._address, remedy=_CHECK) from None
            except lost.RayTaskError as error:
                raise _not_installed(error) or error from None
            except (lost.RayError, ConnectionError) as error:
                message = f"a node or a process of the cluster was lost ({type(error).__name__})"
                raise LostError(message, place=self._address, remedy=_CHECK) from None
        if isinstance(result, Failure):
            raise _seen_here(result)
        return result

    def _require_head(self) -> None:
        """Raises TmtError if the head of the cluster is lost. Ray would end this process without a word from us."""
        try:
            _require_open(self._head)
        except OSError:
            raise TmtError("the head of the cluster is lost", place=self._address, remedy=_CHECK) from None

    def _cpus(self) -> int:
        return int(self._ray.cluster_resources().get("CPU", 0))


def _require_open(address: str) -> None:
    """Raises OSError if nobody listens at `host:port`: Ray would try for minutes."""
    if found := re.fullmatch(r"(?:ray://)?([^/]+):(\d+)", address):
        socket.create_connection((found[1].strip("[]"), int(found[2])), CONNECT).close()


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Ray replaces the handler of SIGTERM."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)


def _node_name() -> str:
    import ray

    return f"{socket.gethostname()} ({ray.get_runtime_context().get_node_id()[:8]})"


def _first_unseen(sizes: Sequence[tuple[str, int | None]], folder: str) -> tuple[str, str]:
    """The first file or folder that this node does not have, or not in this size, else ""; and the name of the node."""
    with suppress(OSError):
        os.chdir(folder)
    for place, size in sizes:
        path = Path(place)
        if not (path.is_dir() if size is None else path.is_file() and path.stat().st_size == size):
            return place, _node_name()
    return "", _node_name()


def _do_on_node(pickled: bytes, item: Any, folder: str, version: str) -> Any:
    """The result of pickled work, or a `Failure`. folder: of the main process, where relative paths start."""
    node = _node_name()
    if version != __version__:
        remedy = "Install the same version on this machine and on all nodes."
        error = TmtError(f"the node {node} has version {__version__} of transformer_mt, not {version}", remedy=remedy)
        return Failure(error, node, missing=False)
    with suppress(OSError):
        os.chdir(folder)
    try:
        return do_pickled(pickled, item)
    except TmtError as error:
        return Failure(error, node, _is_missing(error.place))
    except FileNotFoundError as error:
        place = str(error.filename or "")
        return Failure(
            TmtError(f"no such file on the node {node}", place=place, remedy=_SHARE), node, _is_missing(place)
        )


def _is_missing(place: str) -> bool:
    """Whether a place of an error (`file`, or `file:line`) is a path that does not exist here."""
    paths = [path for path in (place, place.rpartition(":")[0]) if path]
    return bool(paths) and "://" not in place and not any(Path(path).exists() for path in paths)


def _seen_here(failure: Failure) -> TmtError:
    """The error of a node. If its file exists here, the node does not see it."""
    error = failure.error
    if failure.missing and not _is_missing(error.place):
        return _unseen(failure.node, error.place)
    return error


def _unseen(node: str, place: str) -> TmtError:
    return TmtError(f"the node {node} does not see this file, or another one", place=place, remedy=_SHARE)


def _not_installed(error: Exception) -> TmtError | None:
    if "ModuleNotFoundError" not in str(error) or __name__.partition(".")[0] not in str(error):
        return None
    remedy = f"Install version {__version__} of it in the environment of Ray on each node."
    return TmtError("a node of the cluster does not have transformer_mt", remedy=remedy)
