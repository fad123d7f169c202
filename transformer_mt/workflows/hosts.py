"""Several machines without a shared folder: the same program, settings, data and run on all of them.

The first machine, that of rank 0, is the one whose settings count and which writes the run. Each machine prepares the
data itself if it has the corpus, or gets it from the first one. With a shared folder, nothing is done twice.
"""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import torch

from transformer_mt import __version__
from transformer_mt.config.load import ConfigLike, Overrides, config_of, differences
from transformer_mt.config.schema import Config
from transformer_mt.data.contents import Contents, contents_of, different_parts
from transformer_mt.data.parent import Parent
from transformer_mt.data.passes import passes_of
from transformer_mt.data.prepare import require_prepared_or_empty
from transformer_mt.data.prepared import Prepared, prepared_folder, remembered
from transformer_mt.errors import TmtError
from transformer_mt.files.checksum import sha256_of
from transformer_mt.runtime.distributed import World, host_name
from transformer_mt.runtime.transfer import copy_folder
from transformer_mt.training.run_directory import FRESH, Found, RunDirectory
from transformer_mt.training.run_facts import PACKAGES, launcher
from transformer_mt.workflows.parents import parent_of
from transformer_mt.workflows.prepare import prepare_with

OF_HOST = ("data.workers", "data.prepared", "runtime.threads")  # each machine may have its own value


class Program(NamedTuple):
    """What runs on a machine. files: checksum of the package's own code; packages: versions by name."""

    host: str
    files: str
    packages: dict[str, str]


def program() -> Program:
    """What runs on this machine."""
    folder = Path(__file__).parents[1]
    files = sorted(folder.rglob("*.py"))
    digest = hashlib.sha256("\n".join(f"{file.relative_to(folder)} {sha256_of(file)}" for file in files).encode())
    packages = {"transformer_mt": __version__, "torch": torch.__version__}
    packages["python"] = ".".join(platform.python_version_tuple()[:2])
    for name in PACKAGES[1:]:
        with suppress(PackageNotFoundError):
            packages[name] = version(name)
    return Program(host_name(), digest.hexdigest(), packages)


def meet(world: World, fresh: bool) -> dict[int, Program]:
    """The programs of all machines, by the rank of their leaders; empty if there is only one machine.

    Raises TmtError if one runs another version, if only some start afresh, or if machines count as one.
    """
    _require_same_start(world.gather((host_name(), world.leader, fresh)), world)
    if not world.has_several_hosts:
        return {}
    programs = world.on_each_host(program, "the other machines")
    if problem := another_version(list(programs.values())):
        remedy = "Install the same versions on all machines; scripts/constraints.txt lists them."
        world.exit_all(TmtError(problem, remedy=remedy), on_each_host=True)
    return programs


def _require_same_start(starts: Sequence[tuple[str, int, bool]], world: World) -> None:
    """starts: of each process its machine, its leader, and whether it starts afresh"""
    for host, leader, fresh in starts:
        if host != starts[leader][0]:
            error = TmtError(
                f"LOCAL_WORLD_SIZE counts processes of {starts[leader][0]} and {host} as those of one machine",
                remedy="Set it to the number of processes on each machine, as torchrun does.",
            )
            world.exit_all(error, on_each_host=True)
        if fresh != starts[0][2]:
            with_it, without = (host, starts[0][0]) if fresh else (starts[0][0], host)
            error = TmtError(
                f"a process on {with_it} has {FRESH}, and one on {without} has not",
                remedy="Give it everywhere or nowhere.",
            )
            world.exit_all(error, on_each_host=True)


def another_version(programs: Sequence[Program]) -> str:
    """How a machine differs from the first one in the program, torch, numpy or Python, in one line; "" if none does."""
    first = programs[0]
    for other in programs[1:]:
        for name in ("transformer_mt", "torch", "numpy", "python"):
            mine, yours = first.packages.get(name, "none"), other.packages.get(name, "none")
            if mine != yours:
                return f"{other.host} runs {name} {yours}, and {first.host} runs {name} {mine}"
        if other.files != first.files:
            own = first.packages["transformer_mt"]
            return f"{other.host} and {first.host} both run transformer_mt {own}, but with different source files"
    return ""


def config_on_hosts(
    world: World, config: ConfigLike, overrides: Overrides, run: Path | None, fresh: bool
) -> tuple[Config, list[str]]:
    """The config of the first machine, with this machine's own values of OF_HOST; and notes for the user.

    Raises TmtError if the config of another machine differs in other keys.
    """
    main = world.from_main(lambda: config_of(config, overrides, run, fresh), "the config")
    if not world.has_several_hosts:
        return main, []

    def own() -> tuple[str, Config | None, str]:
        try:
            return host_name(), config_of(config, overrides, run, fresh), ""
        except TmtError as error:
            return host_name(), None, str(error).split("\n")[0]

    of_hosts = world.on_each_host(own, "the config")
    host, notes = of_hosts[0][0], list[str]()
    for machine, other, problem in of_hosts.values():
        if other is None:
            notes.append(f"{machine} uses the config of {host}: {problem}")
            continue
        unequal = [line for line in differences(main, other) if not line.startswith(OF_HOST)]
        if unequal:
            listed = "\n    ".join(unequal)
            error = TmtError(
                f"the config of {machine} differs from that of {host} in these keys ({host} | {machine})\n    {listed}",
                remedy="Use the same config on all machines. They may differ only in "
                "data.workers, data.prepared and runtime.threads.",
            )
            world.exit_all(error, on_each_host=True)
    mine = of_hosts[world.leader][1] or main
    data = main.data.model_copy(update={"workers": mine.data.workers, "prepared": mine.data.prepared})
    runtime = main.runtime.model_copy(update={"threads": mine.runtime.threads})
    return main.model_copy(update={"data": data, "runtime": runtime}), notes


def prepare_on_hosts(
    world: World, config: Config, parent: Parent | None, run: Path, programs: Mapping[int, Program], fresh: bool
) -> tuple[Prepared, list[str]]:
    """The same prepared data on the disk of each machine, and notes for the user.

    A machine with the corpus prepares it; one without gets the data of the first machine.
    Raises TmtError if the data differs, and says how; if it cannot be prepared or copied; and, unless the run starts
    afresh, if the corpus has changed since it started: what was prepared then stays, with the run's test sets.
    """
    doing = "the data to be prepared"

    def accept(files: Sequence[Path]) -> None:
        if not fresh and all(file.is_file() for file in files):  # a pipe can be read only once
            RunDirectory(run).require_same_corpus({"corpus": remembered(files)})

    def prepare_here() -> Prepared:
        return prepare_with(config, parent, accept=accept)

    if not world.has_several_hosts:
        return world.from_main(prepare_here, doing), []
    folder = prepared_folder(config)
    shared = _sharing(world, folder.parent)

    def prepare() -> tuple[bool, str]:
        """Whether the data is new, and why this machine cannot prepare it."""
        if world.is_main:
            return prepare_here().is_new, ""
        if shared[world.leader]:
            return False, ""
        if missing := _missing(config, run):
            return False, missing
        return prepare_with(config, parent_of(config, run)).is_new, ""

    made = world.on_each_host(prepare, doing)
    found = world.on_each_host(lambda: _contents(folder, bool(made[world.rank][1])), "the data to be compared")
    takers = [rank for rank, (_, missing) in made.items() if missing and found[rank] != found[0]]
    notes = []
    if takers:
        world.everywhere(lambda: require_prepared_or_empty(folder) if world.rank in takers else None, doing)
        copy_folder(world, folder.resolve() if folder.is_symlink() else folder, 0, takers, "the data to be copied")
        found = world.on_each_host(
            lambda: _contents(folder, False) if world.rank in takers else found[world.rank], "the data to be compared"
        )
        notes = [
            f"{programs[rank].host} has got the prepared data of {programs[0].host}: {made[rank][1]}" for rank in takers
        ]
    for rank, contents in found.items():
        if contents != found[0]:
            error = _different(programs[0], found[0] or {}, programs[rank], contents or {})
            world.exit_all(error, on_each_host=True)
    return world.everywhere(lambda: Prepared.open(folder, is_new=made[0][0])), notes


def _sharing(world: World, folder: Path) -> dict[int, bool]:
    """By rank of the leaders: whether `folder` of that machine is known to be that of the first one."""

    def mark() -> str:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            name = f".{uuid4().hex}.shared"
            (folder / name).touch()
            return name
        except OSError:  # prepared data may be read-only; without it, `prepare` says what is wrong
            return ""

    name = world.from_main(mark)
    try:
        return world.on_each_host(lambda: bool(name) and (folder / name).exists())
    finally:
        if world.is_main and name:
            with suppress(OSError):
                (folder / name).unlink()


def _missing(config: Config, run: Path) -> str:
    """Why this machine cannot prepare the data: a file that it lacks. Empty if it can."""
    try:
        for one in passes_of(config.data):
            one.corpus.fetch()
        parent_of(config, run)
    except TmtError as error:
        return str(error).split("\n")[0]
    return ""


def _contents(folder: Path, may_be_absent: bool) -> Contents | None:
    """The checksums of prepared data. may_be_absent: None if there is none, instead of an error."""
    try:
        return contents_of(Prepared.open(folder))
    except TmtError:
        if may_be_absent:
            return None
        raise


def _different(first: Program, expected: Contents, other: Program, found: Contents) -> TmtError:
    """The error for two machines with different prepared data."""
    parts = different_parts(expected, found)
    names = dict.fromkeys([*first.packages, *other.packages])
    versions = [
        f"{name} {first.packages.get(name, 'none')} | {other.packages.get(name, 'none')}"
        for name in names
        if first.packages.get(name) != other.packages.get(name)
    ]
    if versions:
        parts.append(f"versions: {', '.join(versions)}")
    listed = "\n    ".join(parts)
    return TmtError(
        f"the prepared data of {other.host} differs from that of {first.host} in\n    {listed}",
        remedy=f"Copy the corpus of {first.host} to {other.host}, or remove it from {other.host}, which then gets the"
        f" prepared data of {first.host}.",
    )


def find_run(world: World, folder: Path, config: Config, programs: Mapping[int, Program]) -> list[str]:
    """Make sure that the first machine has the run, if one of them has it. Returns notes for the user.

    Raises TmtError if the first machine has no run, and the others have different ones.
    """
    if not world.has_several_hosts:
        return []
    names = {rank: one.host for rank, one in programs.items()}
    on_hosts = world.on_each_host(
        lambda: RunDirectory(folder).found(config, world.size), "the checkpoints of the machines"
    )
    newer = newer_than_first(on_hosts)
    if len({one.run for one in newer.values()}) > 1:
        listed = ", ".join(f"{names[rank]}: step {one.step:,}" for rank, one in newer.items())
        problem = f"{names[0]} has no run here, and the others have different ones ({listed})"
        remedy = f"Copy the folder of one of them to {names[0]}, or give another --run-dir."
        world.exit_all(TmtError(problem, place=folder, remedy=remedy), on_each_host=True)
    notes = []
    if newer:
        giver = max(newer, key=lambda rank: newer[rank].step)
        with ExitStack() as held:
            world.everywhere(lambda: _hold(folder, held) if world.rank == giver else None)
            aside = world.from_main(lambda: _move_aside(folder))
            copy_folder(world, folder, giver, [0], "the run to be copied")
        step = newer[giver].step
        notes.append(f"{names[0]} has got the run of {names[giver]}, up to step {step:,}, and writes it from now on")
        notes += [f"the older state of {names[0]} moved to {aside}"] if aside is not None else []
        on_hosts[0] = on_hosts[giver]
    return [*notes, *unlike_first(on_hosts, names)]


def newer_than_first(on_hosts: Mapping[int, Found]) -> dict[int, Found]:
    """What other machines have, by rank, if they are ahead of the first one: of its run, or of any if it has none."""
    first = on_hosts[0]
    if first.is_another:
        return {}
    of_run = {rank: one for rank, one in on_hosts.items() if one.run and one.run == (first.run or one.run)}
    return {rank: one for rank, one in of_run.items() if one.step > first.step}


def unlike_first(on_hosts: Mapping[int, Found], names: Mapping[int, str]) -> list[str]:
    """A note for each machine that does not have what the first one has."""
    first, notes = on_hosts[0], []
    state = f"the state of {names[0]}, of step {first.step:,}" if first.step >= 0 else f"the new state of {names[0]}"
    for rank, one in on_hosts.items():
        if one.is_another or (one.run and one.run != first.run):
            notes.append(f"{names[rank]} has another run, which stays as it is; it gets {state}")
        elif one != first and first.step >= 0:
            older = f"only a checkpoint of step {one.step:,}" if one.step >= 0 else "no checkpoint of this run"
            notes.append(f"{names[rank]} has {older}; it gets {state}")
    return notes


def restart_notes() -> list[str]:
    """Whether `torchrun` cannot take back a machine: its processes share its store, which a restart does not renew."""
    restarts, shares = (os.environ.get(f"TORCHELASTIC_{name}", "") for name in ("MAX_RESTARTS", "USE_AGENT_STORE"))
    if restarts in ("", "0") or shares != "True":
        return []
    advice = "before torchrun:  export TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1"
    return [f"torchrun will not take back a machine whose torchrun has ended, unless you write {advice}"]


def require_torchrun() -> None:
    """Raises TmtError if a job scheduler has started several processes without torchrun: each would train alone."""
    found = {name: os.environ.get(name, "") for name in ("SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")}
    several = next((name for name, number in found.items() if number.isdecimal() and int(number) > 1), None)
    if several is not None and "RANK" not in os.environ:
        raise TmtError(
            f"{several} is {found[several]}, but only torchrun lets processes train together",
            remedy="Start one task on each machine:  torchrun --nproc-per-node auto -m transformer_mt train --config"
            " my.yaml  (for several machines, see docs/distributed.md). If each task trains another model, unset"
            f" {several} in it.",
        )


def launchers(world: World) -> list[str]:
    """Every `torchrun` that started these processes."""
    return sorted({name for name in world.gather(launcher()) if name})


def was_restarted(world: World, run: Path) -> bool:
    """Whether the `torchrun` of one of the machines has started this run before."""
    names = launchers(world)
    return world.from_main(lambda: RunDirectory(run).was_started_by(names))


def _hold(folder: Path, held: ExitStack) -> None:
    """Lock a run. Raises TmtError if another training writes it."""
    held.enter_context(closing(RunDirectory(folder))).lock()


def _move_aside(folder: Path) -> Path | None:
    with closing(RunDirectory(folder)) as run:
        return run.move_aside()
