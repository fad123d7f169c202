"""`tmt`: the commands, and how whatever goes wrong reaches the user.

Imports nothing but typer at the top: `tmt --help` must answer at once.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from importlib import import_module
from typing import Annotated, Any

import typer

from transformer_mt import __version__
from transformer_mt.cli.streams import set_up_streams, settle
from transformer_mt.errors import INTERRUPTED, USER_FAULT, TmtError, from_os_error

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

_UsageError: Any = typer.BadParameter.__base__  # what typer raises for every mistake in the arguments


def _version(wanted: bool) -> None:
    if wanted:
        print(f"tmt {__version__}")
        raise typer.Exit


@app.callback()
def tmt(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Train a Transformer on your own sentences, from a YAML file, and translate with it."""


COMMANDS = ("init", "download", "prepare", "train", "translate", "evaluate", "inspect", "average", "plot", "export")


def run() -> None:
    """The console script: run a command and turn what goes wrong into one message and an exit code."""
    # Idle threads shall sleep, not spin: on a machine that is busy with other things spinning ones stop all progress.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # SIGTERM ends a command as Ctrl-C does: files aside are removed, the exit code is 130.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    arguments = sys.argv[1:]
    set_up_streams()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal that cannot write Hangul shows ?, as stderr does
    code = main(arguments)
    settle(sys.stdout)
    settle(sys.stderr)
    sys.exit(code)


def add_commands(first: str) -> None:
    """The command that is asked for; or all by name, with a sentence each and no options, where help lists them.

    first: the first argument.
    """
    if first == "--version":
        return
    for name in (first,) if first in COMMANDS else COMMANDS:
        command = getattr(import_module(f"transformer_mt.cli.{name}"), name)
        if name == first:
            app.command(name)(command)
        else:  # a list needs no options, and to look at every option of every command takes longer than the rest
            app.command(name, short_help=(command.__doc__ or "").split("\n")[0])(lambda: None)


def main(arguments: list[str]) -> int:
    """Run a command. Returns its exit code."""
    code = 0
    try:
        add_commands(arguments[0] if arguments else "")
        command = typer.main.get_command(app)
        try:
            with command.make_context("tmt", arguments) as context:  # not command.main(): it exits 1 on a broken pipe
                command.invoke(context)
        except typer.Exit as leave:
            code = leave.exit_code
        sys.stdout.flush()
        return code
    except TmtError as error:
        return _tell(str(error), error.exit_code)
    except (typer.Abort, KeyboardInterrupt):
        return _tell("interrupted", INTERRUPTED)
    except _UsageError as error:
        return _tell_usage(error, arguments)
    except BrokenPipeError:  # whoever read our output has gone (`| head`)
        return 0
    except OSError as error:
        return _tell(str(from_os_error(error, "running this command")), USER_FAULT)


def _tell_usage(error: Any, arguments: list[str]) -> int:
    """The command line library's own message, and what it leaves open: words too many, and no config."""
    error.show()
    message = error.format_message()
    if "Missing option '--config'" in message:
        print(f"  Name the config with --config:  tmt {arguments[0]} --config my.yaml", file=sys.stderr)
    elif "unexpected extra argument" in message and "=" in message.rpartition("(")[2]:
        print("  Give --set before each KEY=VALUE:  --set training.max_epochs=5 --set seed=2", file=sys.stderr)
    return USER_FAULT


def _tell(message: str, code: int) -> int:
    print(f"tmt: {message}", file=sys.stderr)
    return code


if __name__ == "__main__":
    run()
