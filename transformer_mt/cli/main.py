"""`tmt`: the commands, and how errors become messages and exit codes.

Only typer is imported at the top, so that `tmt --help` answers at once.
"""

from __future__ import annotations

import io
import os
import sys
from importlib import import_module
from typing import Annotated, Any

import typer

from transformer_mt import __version__
from transformer_mt.cli import completion
from transformer_mt.cli.streams import set_up_streams, settle
from transformer_mt.errors import INTERRUPTED, USER_FAULT, TmtError, from_os_error, is_out_of_memory
from transformer_mt.reporting.program import (
    as_called,
    interrupt_on_signals,
    only_once,
    program_name,
    require_one_process,
    was_interrupted,
)
from transformer_mt.reporting.terminal import columns_of, painted, wrapped

app = typer.Typer(
    add_completion=False,  # `tmt` below has these options too, in words of ours
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

_UsageError: Any = typer.BadParameter.__base__  # what typer raises for every mistake in the arguments


class _Command(typer.core.TyperCommand):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing:
            only_once(self.make_parser(ctx).parse_args(args=list(args))[2])
        return super().parse_args(ctx, args)


def _version(context: typer.Context, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        print(f"tmt {__version__}")
        raise typer.Exit


START = f"""\b
Start here:
  {program_name()} init quickstart
  {program_name()} train --config quickstart.yaml
  {program_name()} translate "..."
"""


@app.callback(epilog=START)
def tmt(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    install: Annotated[
        bool,
        typer.Option(
            "--install-completion",
            callback=completion.install_completion,
            is_eager=True,
            help="Make Tab complete commands, options and names in this shell.",
        ),
    ] = False,
    show: Annotated[
        bool,
        typer.Option(
            "--show-completion",
            callback=completion.show_completion,
            is_eager=True,
            help="Print the completion script of this shell.",
        ),
    ] = False,
) -> None:
    """Train a Transformer on your own sentences, from a YAML file, and translate with it."""


COMMANDS = (
    *("init", "download", "prepare", "train", "tune", "synthesize", "translate", "serve", "evaluate", "score"),
    *("compare", "inspect", "average", "plot", "convert", "export"),
)
# Each process of torchrun would do all of their work.
ALONE = ("translate", "evaluate", "score", "convert", "export", "serve")


def run() -> None:
    """The console script: run a command, and exit with its code."""
    # Idle threads must sleep, not spin: on a busy machine, spinning threads stop all progress.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # Jupyter names a backend for the windows of matplotlib that may not be installed here; pictures need none.
    os.environ["MPLBACKEND"] = "agg"
    interrupt_on_signals()
    set_up_streams()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # an encoding without Hangul shows ?
    code = main(sys.argv[1:])
    settle(sys.stdout)
    settle(sys.stderr)
    sys.exit(code)


def add_commands(first: str) -> None:
    """Add the command that `first`, the first argument, names; otherwise all commands without options, for help."""
    app.registered_commands.clear()  # those of an earlier call in this process
    for name in (first,) if first in COMMANDS else () if first == "--version" else COMMANDS:
        command = getattr(import_module(f"transformer_mt.cli.{name}"), name)
        if name == first:
            app.command(name, cls=_Command)(command)
        else:  # reading the options of every command would take most of the time of --help
            app.command(name, short_help=(command.__doc__ or "").split("\n")[0])(lambda: None)


def main(arguments: list[str]) -> int:
    """Run a command. Returns its exit code."""
    code = 0
    try:
        is_completion = bool(completion.completion_request())
        add_commands(completion.first_word() if is_completion else arguments[0] if arguments else "")
        if arguments and arguments[0] in ALONE:
            require_one_process(arguments[0])
        command = typer.main.get_command(app)
        if is_completion:
            return completion.answer_shell(command)
        try:
            # not command.main(): it exits with 1 on a broken pipe
            with command.make_context(program_name(), arguments) as context:
                command.invoke(context)
        except typer.Exit as leave:
            code = leave.exit_code
        sys.stdout.flush()
        return code
    except TmtError as error:
        return _report(str(error), error.exit_code)
    except (typer.Abort, KeyboardInterrupt):
        return _report("interrupted", INTERRUPTED)
    except _UsageError as error:
        return _report_usage(error, arguments)
    except BrokenPipeError:  # the reader of stdout has gone (`| head`)
        return 0
    except OSError as error:
        return _report(str(from_os_error(error, "running this command")), USER_FAULT)
    except Exception as error:
        if was_interrupted():  # and a library has made another error of it
            return _report("interrupted", INTERRUPTED)
        if not is_out_of_memory(error):
            raise
        remedy = "Close other programs, or use a smaller beam, model or batch (training.batch_tokens)."
        return _report(str(TmtError("out of memory", remedy=remedy)), USER_FAULT)


def _report_usage(error: Any, arguments: list[str]) -> int:
    """The command line library's own message, and what to type instead if that is known."""
    error.message = error.message.removeprefix("Value error, ")  # typer's word for a value outside a list
    error.show()
    message, remedy = error.format_message(), ""
    first, *others = arguments or [""]
    if "Missing option '--config'" in message:
        file = next((word for word in others if word.endswith(completion.YAML)), "my.yaml")
        remedy = f"Name the config with --config:  tmt {first} --config {file}"
        remedy += "" if others else "\n  To write one to start from:  tmt init quickstart"
    elif "No such command" in message:
        if first.endswith(completion.YAML):
            remedy = f"To train with a config:  tmt train --config {first}"
        elif "Did you mean" not in message:
            remedy = f"There are: {', '.join(COMMANDS)}."
    elif "unexpected extra argument" in message and "=" in message.rpartition("(")[2]:
        remedy = "Give --set before each KEY=VALUE:  --set training.max_epochs=5 --set seed=2"
    elif "unexpected extra argument" in message and "--data" in others:
        remedy = "Give --data before each file, or a folder with all of them:  --data a.tsv --data b.tsv"
    if remedy:
        print(wrapped(f"  {as_called(remedy, COMMANDS)}", columns_of(sys.stderr)), file=sys.stderr)
    return USER_FAULT


def _report(message: str, code: int) -> int:
    print(f"{painted('tmt:', 'red', sys.stderr)} {as_called(message, COMMANDS)}", file=sys.stderr)
    return code


if __name__ == "__main__":
    run()
