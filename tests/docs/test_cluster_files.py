"""The files for clusters in docs/cluster: each is linted, and starts torchrun or a server as its page says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from transformer_mt.cli import main
from transformer_mt.serving import start

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "cluster"
# https://docs.skypilot.co/en/latest/reference/yaml-spec.html
SKYPILOT = {
    "name",
    "workdir",
    "num_nodes",
    "resources",
    "envs",
    "secrets",
    "volumes",
    "file_mounts",
    "setup",
    "run",
    "config",
}
SKYPILOT_RESOURCES = {"infra", "accelerators", "accelerator_args", "cpus", "memory", "instance_type", "use_spot"} | {
    *("disk_size", "disk_tier", "network_tier", "image_id", "ports", "labels", "autostop", "any_of", "ordered"),
    "job_recovery",
}
SKYPILOT_MODES = {"MOUNT", "COPY", "MOUNT_CACHED"}


def text(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def kubernetes(name: str = "kubernetes.yaml") -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(text(name)))


def container() -> dict[str, Any]:
    (found,) = kubernetes()[1]["spec"]["template"]["spec"]["containers"]
    return found


def scripts() -> dict[str, str]:
    """Every piece of shell in these files."""
    sky = yaml.safe_load(text("skypilot.yaml"))
    pod = container()["command"]
    assert pod[:2] == ["bash", "-euc"]
    return {"slurm": text("slurm.sbatch"), "pod": pod[2], "setup": sky["setup"], "run": sky["run"]}


def test_every_file_is_on_its_page():
    served, shown = {"serve.yaml"}, list[set[str]]()
    for name in ("distributed.md", "serving.md"):
        page = (ROOT / "docs" / name).read_text(encoding="utf-8")
        shown.append(set(re.findall(r"\{\{ code docs/cluster/(\S+) \}\}", page)))
    assert shown == [{file.name for file in FOLDER.iterdir()} - served, served]


@pytest.mark.parametrize("name", scripts())
def test_the_shell_in_them_is_correct(name: str, tmp_path: Path):
    script, shellcheck = tmp_path / "script.sh", Path(sys.executable).parent / "shellcheck"
    script.write_text(scripts()[name], encoding="utf-8")
    if not (bash := shutil.which("bash")):
        pytest.skip("needs bash")
    assert subprocess.run([bash, "-n", script], check=False).returncode == 0
    if shellcheck.exists():
        command = [shellcheck, "--shell=bash", script]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", ["slurm", "pod", "run"])
def test_each_starts_tmt_so_that_a_machine_can_come_back(name: str):
    command = torchrun(scripts()[name])
    for part in ("--max-restarts 3", "--rdzv-backend c10d", ":29500", "-m transformer_mt train --config"):
        assert part in command
    file = {"slurm": "slurm.sbatch", "pod": "kubernetes.yaml", "run": "skypilot.yaml"}[name]
    assert "TORCH_DISABLE_SHARE_RDZV_TCP_STORE" in text(file)


def torchrun(script: str) -> str:
    """The command in a script, on one line."""
    joined = re.sub(r"\s*\\\n\s*", " ", script)
    (line,) = (line for line in joined.splitlines() if "torchrun --nnodes" in line)
    return line[line.index("torchrun --nnodes") :]


def test_torchrun_and_tmt_know_the_options():
    """The commands, with numbers for the variables."""
    from torch.distributed.run import get_args_parser

    command = [sys.executable, "-m", "transformer_mt", "train", "--help"]
    options = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    for name in ("slurm", "pod", "run"):
        _, *words = re.sub(r"\\?\$\{?\w+(:-[^}]*)?\}?", "1", torchrun(scripts()[name])).replace('"', "").split()
        arguments = get_args_parser().parse_args(words)
        assert arguments.module
        assert arguments.training_script == "transformer_mt"
        assert arguments.max_restarts == 3
        for option in (word for word in arguments.training_script_args if word.startswith("--")):
            assert option in options


def test_slurm_gets_one_task_for_each_machine_and_time_to_save():
    asked = dict(re.findall(r"^#SBATCH --([\w-]+)(?:=(\S+))?$", text("slurm.sbatch"), re.M))
    assert asked["ntasks-per-node"] == "1"
    assert asked["signal"] == "B:USR1@120"
    assert "requeue" in asked
    assert int(asked["nodes"]) > 1


# Programs of Slurm. This srun is a training that ends with a code after its checkpoint, or that is done at once.
SLURM = {
    "scontrol": '[ "$1" = show ] && echo node-1 || echo "scontrol $*" >> "$LOG"',
    "scancel": 'echo "scancel $*" >> "$LOG"; touch "$LOG.stop"',
    "srun": 'kill -USR1 "$PPID"; until [ -e "$LOG.stop" ]; do sleep 0.1; done; echo saved >> "$LOG"; exit CODE',
}


@pytest.mark.parametrize(("is_over", "code"), [(True, 1), (True, 0), (False, 3)])
def test_slurm_waits_for_the_checkpoint_and_queues_the_job_again_only_if_the_time_is_over(
    is_over: bool, code: int, tmp_path: Path
):
    """code: of the training, which may finish in its last two minutes"""
    if not (bash := shutil.which("bash")):
        pytest.skip("needs bash")
    log = tmp_path / "log"
    for name, body in SLURM.items():
        program = tmp_path / name
        body = body.replace("CODE", str(code)) if is_over or name != "srun" else f"exit {code}"
        program.write_text(f"#!{bash}\n{body}\n", encoding="utf-8")
        program.chmod(0o755)
    job = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "node-1", "SLURM_JOB_NUM_NODES": "1", "LOG": str(log)}
    environment = {**os.environ, **job, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    command = [bash, FOLDER / "slurm.sbatch", "my.yaml"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
    said = log.read_text(encoding="utf-8").splitlines() if is_over else []
    again = ["scontrol requeue 7"] if code else []
    assert said == (["scancel --signal=TERM 7", "saved", *again] if is_over else [])
    assert log.exists() == is_over
    assert done.returncode == code, done.stderr


@pytest.mark.parametrize("name", ["kubernetes.yaml", "serve.yaml"])
def test_kubernetes_accepts_the_objects(name: str):
    kubernetes_validate = pytest.importorskip("kubernetes_validate", reason="pip install kubernetes-validate")
    for one in kubernetes(name):
        kubernetes_validate.validate(one, "1.31", strict=True)


def test_the_parts_of_kubernetes_fit_together():
    service, stateful = kubernetes()
    name, labels = service["metadata"]["name"], stateful["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["clusterIP"] == "None"
    assert stateful["spec"]["serviceName"] == name
    assert service["spec"]["selector"] == labels == stateful["spec"]["selector"]["matchLabels"]
    first = f"{stateful['metadata']['name']}-0.{name}:{service['spec']['ports'][0]['port']}"
    assert f"--rdzv-endpoint {first}" in container()["command"][2]
    assert f"--nnodes {stateful['spec']['replicas']} " in container()["command"][2]
    pod = stateful["spec"]["template"]["spec"]
    volumes = {one["name"] for one in pod["volumes"]} | {
        one["metadata"]["name"] for one in stateful["spec"]["volumeClaimTemplates"]
    }
    assert {one["name"] for one in container()["volumeMounts"]} == volumes
    user = re.search(r"^USER (\d+)$", (ROOT / "Dockerfile").read_text(encoding="utf-8"), re.M)
    assert user
    assert pod["securityContext"] == {"runAsUser": int(user[1]), "fsGroup": int(user[1])}


def test_what_serves_under_kubernetes_is_reached_probed_and_may_write_only_to_tmp(monkeypatch: pytest.MonkeyPatch):
    service, deployment = kubernetes("serve.yaml")
    pod = deployment["spec"]["template"]["spec"]
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    (one,) = pod["containers"]
    (port,), (inside,) = service["spec"]["ports"], one["ports"]
    assert service["spec"]["selector"] == labels == deployment["spec"]["selector"]["matchLabels"]
    assert port["targetPort"] == inside["name"]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert one[probe]["httpGet"] == {"path": "/health", "port": inside["name"]}
    assert pod["securityContext"]["runAsNonRoot"]
    assert one["securityContext"]["readOnlyRootFilesystem"]
    assert [mount["mountPath"] for mount in one["volumeMounts"]] == ["/tmp"]

    started: list[Any] = []
    (variable,) = (entry["name"] for entry in one["env"])
    arguments = [argument.replace(f"$({variable})", "10.1.2.3") for argument in one["args"]]
    monkeypatch.setattr(start, "serve", lambda *given: started.append(given))
    monkeypatch.setattr(sys, "argv", ["tmt", *arguments])
    with pytest.raises(SystemExit) as left:
        main.run()
    assert not left.value.code
    ((_, _, _, address, limits, _),) = started
    assert address.port == inside["containerPort"]
    assert {service["metadata"]["name"], "10.1.2.3"} <= address.known_hosts()
    assert pod["terminationGracePeriodSeconds"] >= limits.seconds + int(
        one["lifecycle"]["preStop"]["exec"]["command"][1]
    )


def test_skypilot_documents_every_key():
    sky = yaml.safe_load(text("skypilot.yaml"))
    assert set(sky) <= SKYPILOT
    assert set(sky["resources"]) <= SKYPILOT_RESOURCES
    for mount in sky["file_mounts"].values():
        assert set(mount) <= {"name", "source", "store", "mode", "persistent"}
        assert mount["mode"] in SKYPILOT_MODES
    used = set(re.findall(r"\$\{?(SKYPILOT_\w+)", sky["run"]))
    assert used <= {"SKYPILOT_NODE_IPS", "SKYPILOT_NUM_NODES", "SKYPILOT_NODE_RANK", "SKYPILOT_TASK_ID"}
