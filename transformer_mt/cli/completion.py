"""Shell completion: what Tab offers for arguments and options, and how a shell gets its script.

The functions import what they need when Tab calls them, and nothing that takes long.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, get_args

import typer

from transformer_mt.errors import TmtError
from transformer_mt.reporting.program import NAMES, program_name

Completer = Callable[[str], list[str]]  # from the start of a word to the words that it can become
YAML = (".yaml", ".yml")


def offer(values: Callable[[], Iterable[object]]) -> Completer:
    """Completes a word to one of `values`, which is called when Tab is pressed."""

    def complete(incomplete: str) -> list[str]:
        return [str(value) for value in values() if str(value).startswith(incomplete)]

    return complete


def _devices() -> Iterable[str]:
    from transformer_mt.config.training import RuntimeConfig

    return get_args(RuntimeConfig.model_fields["device"].annotation)


def _utilities() -> Iterable[str]:
    from transformer_mt.config.decoding import DecodingConfig

    return get_args(DecodingConfig.model_fields["utility"].annotation)


def _engines() -> Iterable[str]:
    from transformer_mt.workflows.engines import ENGINES

    return ENGINES


def _quantizations() -> Iterable[str]:
    from transformer_mt.workflows.engines import QUANTIZATIONS

    return QUANTIZATIONS


def _corpora() -> Iterable[str]:
    from transformer_mt.workflows.download import public_corpora

    return public_corpora()


def _shipped_configs() -> Iterable[str]:
    from transformer_mt.cli.init import FIRST
    from transformer_mt.workflows.configs import shipped_configs

    return shipped_configs(FIRST)


def _runs() -> Iterable[Path]:
    from transformer_mt.workflows.runs import run_folders

    return run_folders()


def _models() -> Iterable[Path]:
    from transformer_mt.workflows.runs import run_folders

    return run_folders(finished=True)


def config_files(incomplete: str) -> list[str]:
    """YAML files that start like this, and those in folders that do, down to two levels."""
    start = incomplete.rpartition("/")[0]
    folder = Path(start or ("/" if incomplete.startswith("/") else "."))
    found = [path for pattern in ("*", "*/*", "*/*/*") for path in folder.glob(pattern) if path.suffix in YAML]
    plain = re.compile(r"[^.\s'\"$`\\][^\s'\"$`\\]*")  # the shell would need quotes for others
    visible = [path for path in found if all(plain.fullmatch(part) for part in path.relative_to(folder).parts)]
    texts = (f"{start}/{path.relative_to(folder).as_posix()}" if "/" in incomplete else str(path) for path in visible)
    return sorted(text for text in texts if text.startswith(incomplete))


devices, utilities, engines, quantizations = map(offer, (_devices, _utilities, _engines, _quantizations))
corpora, configs, runs, models = map(offer, (_corpora, _shipped_configs, _runs, _models))


def _script() -> tuple[str, str]:
    """The name of the script to complete, and the environment variable by which a shell asks for completions."""
    name = program_name() if program_name() in NAMES else NAMES[0]
    return name, f"_{name.replace('-', '_').upper()}_COMPLETE"


def completion_request() -> str:
    """What a shell asks for, such as `complete_bash`; empty if a person called the program."""
    return os.environ.get(_script()[1], "")


def first_word() -> str:
    """The first argument on the line that a shell wants completed."""
    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or ""
    words = line.split()
    return words[1] if len(words) > 1 else ""


def answer_shell(command: Any) -> int:
    """Print the completions that the shell asks for. Returns the exit code."""
    from typer.completion import completion_init, shell_complete  # type: ignore[attr-defined]

    completion_init()
    return shell_complete(command, {}, *_script(), completion_request())


def install_completion(context: typer.Context, wanted: bool) -> None:
    """The option --install-completion. Raises TmtError if the shell is unknown or not supported."""
    if not wanted or context.resilient_parsing:  # Tab only reads the line
        return
    from typer.completion import install  # type: ignore[attr-defined]

    name, variable = _script()
    with redirect_stdout(sys.stderr):
        try:
            shell, file = install(prog_name=name, complete_var=variable)
        except typer.Exit:
            raise _unsupported() from None
    print(f"Wrote the completion for {shell} to {file}. Open a new terminal to use it.", file=sys.stderr)
    raise typer.Exit


def show_completion(context: typer.Context, wanted: bool) -> None:
    """The option --show-completion. Raises TmtError if the shell is unknown or not supported."""
    if not wanted or context.resilient_parsing:
        return
    from typer.completion import _get_shell_name, get_completion_script  # type: ignore[attr-defined]

    name, variable = _script()
    with redirect_stdout(sys.stderr):
        try:
            script = get_completion_script(prog_name=name, complete_var=variable, shell=_get_shell_name() or "")
        except typer.Exit:
            raise _unsupported() from None
    print(script)
    raise typer.Exit


def _unsupported() -> TmtError:
    return TmtError(
        "completion is not available for this shell", remedy="Start the command from bash, zsh, fish or PowerShell."
    )
