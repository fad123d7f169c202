"""A Ray cluster of two nodes, with one CPU each, on the loopback: prints its address, and ends with its standard input.

A line on the standard input kills the second node, as a machine that fails.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

MEMORY = 80 << 20  # bytes of a node for results; the least that Ray accepts is 75 MiB


def main() -> None:
    scratch = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))  # sockets have short paths only
    os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_TMPDIR=str(scratch))
    folder = scratch / "ray"
    folder.mkdir()  # Ray writes into it before it creates it
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 1, "object_store_memory": MEMORY, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args={**node, "temp_dir": str(folder)})
    try:
        second = cluster.add_node(**node)
        print(cluster.address, flush=True)
        if sys.stdin.readline():
            cluster.remove_node(second, allow_graceful=False)
            print("killed", flush=True)
            sys.stdin.readline()
    finally:
        cluster.shutdown()
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    main()
