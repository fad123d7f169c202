"""Work on a Ray cluster of two nodes on this machine: the same results in order, and no node is needed to the end."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import transformer_mt
from transformer_mt.config.schema import Config
from transformer_mt.data.parallel import AHEAD, Workers
from transformer_mt.data.prepare import prepare
from transformer_mt.errors import TmtError

ray = pytest.importorskip("ray", reason="needs the package ray")
pytestmark = pytest.mark.slow
