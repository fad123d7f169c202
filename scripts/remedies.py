"""What the page of messages says beside the messages: groups by what the user was doing, and causes.

A cause belongs to a function of the package, whatever the words of its message are.
"""

from __future__ import annotations

INTRODUCTION = """# Troubleshooting

Every message of the program: what it means and what to do. Search this page for a few words of
your message; on the site, the key `/` opens the search.

A message says what is wrong, where, and what to do next:

```text
tmt: FILE:LINE: what is wrong
  What to do next.
```

Words in capitals stand for what the program fills in: `FILE:LINE` is a file and a line (of a table, the row; of a list
in a JSON file, the object), `N` a number, `REASON` what the operating system or a library said. Errors end the command
with exit code 2 and leave earlier results as they were; code 130 means that the command was interrupted. A traceback
(exit code 1) is a bug: please
[report it](https://github.com/transformer-mt/transformer_mt/issues) with the command and the config.

"""

# Title, sentence, and the modules whose messages belong there; the longest prefix that fits decides.
GROUPS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("The command line", "", ("cli", "workflows")),
    (
        "The config",
        "All mistakes of a config are listed at once, each with its file and line, under one remedy. "
        "[The reference](configuration.md) has every key with its type and range.",
        ("config", "workflows.configs", "cli.init"),
    ),
    ("Files and downloads", "", ("errors", "files", "workflows.download", "cli.download")),
    (
        "Preparing data",
        "",
        (
            "corpora",
            "data",
            "text",
            "phrasebook",
            "workflows.prepare",
            "workflows.propose",
            "workflows.proposal",
            "workflows.data_remarks",
            "workflows.data_report",
            "cli.prepare",
        ),
    ),
    ("Training", "", ("training", "workflows.train", "kernels", "model", "runtime", "cli.train")),
    ("Synthetic text", "", ("workflows.synthesis", "workflows.synthesize", "cli.synthesize")),
    (
        "Models and checkpoints",
        "",
        (
            *("decoding.finding", "decoding.model_directory", "runtime.weights", "text.codec", "training.checkpoint"),
            *("workflows.models", "workflows.average", "cli.average", "cli.inspect", "workflows.inspect"),
        ),
    ),
    (
        "Translating",
        "",
        (
            "decoding",
            "workflows.translate",
            "workflows.documents",
            "workflows.engines",
            "cli.translate",
            "cli.streaming",
            "cli.answers",
        ),
    ),
    (
        "Evaluating",
        "",
        (
            "evaluation",
            "workflows.evaluate",
            "workflows.test_sets",
            "workflows.translated_sets",
            "workflows.score",
            "cli.evaluate",
            "cli.score",
        ),
    ),
    ("Exporting", "", ("exporting", "workflows.export", "cli.export")),
    ("Serving", "", ("serving", "cli.serve")),
    ("Plots and logs", "", ("reporting", "cli.plot", "workflows.plot")),
)

# What the library of the command line prints itself, and what to do; a test provokes each with `tmt`.
_USAGE = (
    ("No such option: OPTION", "The command does not have this option. `tmt COMMAND --help` lists those it has."),
    ("No such command 'NAME'.", "`tmt --help` lists the commands."),
    (
        "Missing option 'OPTION'.",
        "The command cannot work without this option; for `--config` a second line shows how.",
    ),
    ("Missing argument 'NAME'.", "`tmt COMMAND --help` shows which arguments the command takes, and in which order."),
    ("Option 'OPTION' requires an argument.", "Write the value after the option: `--beam 5`."),
    (
        "Invalid value for 'OPTION': Input should be a valid integer, unable to parse string as an integer",
        "The option takes a whole number: `--beam 5`.",
    ),
    (
        "Invalid value for 'OPTION': Input should be a valid number, unable to parse string as a number",
        "The option takes a number: `--length-penalty 0.6`.",
    ),
    (
        "Invalid value for 'OPTION': Input should be greater than or equal to N",
        "The number is too small. `tmt COMMAND --help` shows the range of each option.",
    ),
    (
        "Invalid value for 'OPTION': Input should be less than or equal to N",
        "The number is too large. `tmt COMMAND --help` shows the range of each option.",
    ),
    ("Invalid value for 'OPTION': 'VALUE' is not one of CHOICES.", "Use one of the values that the message lists."),
    (
        "Got unexpected extra argument(s) (VALUE)",
        "Quote a sentence that has spaces: `tmt translate 'Guten Tag.'`. Each `KEY=VALUE` needs a `--set` before it.",
    ),
)
_OF_COMMAND = "Usage: tmt COMMAND [OPTIONS] ...\nTry 'tmt COMMAND -h' for help.\n\n"
_HEADS = {
    "No such command 'NAME'.": "Usage: tmt [OPTIONS] COMMAND [ARGS]...\nTry 'tmt -h' for help.\n\n",
    "Option 'OPTION' requires an argument.": "",
}
USAGE = [
    f"#### {text}\n\n```text\n{_HEADS.get(text, _OF_COMMAND)}Error: {text}\n```\n\n{cause}\n\n"
    for text, cause in _USAGE
]

CONFIG = "Change this key at the line of the message. [The reference](configuration.md) has its type and range."

CAUSES = {
    "config.load.put_value": "`--set` names a key below something that is a value, not a section.",
    "config.yaml_source._walk": "YAML would silently take the last of the two.",
    "corpora.tables.require_few_wrong": "Usually a separator stands inside a sentence that is not quoted.",
    "corpora.text.read_parallel": "Usually one file lost its empty lines, or a sentence holds a line break.",
    "data.processes._lost_worker_reported": "The operating system ends processes when memory runs out.",
    "workflows.test_sets._split_of": "A model must be scored with the splits that it was trained with.",
    "data.selection._divide": "Validation and test together must leave pairs for training.",
    "data.store._damaged": "A copy was cut short, or the files were changed after `tmt prepare`.",
    "decoding.batches.in_parts": "A batch that does not fit is split, but this sentence does not fit alone.",
    "decoding.translator._require_alike": "An ensemble adds the scores of its models token by token.",
    "exporting.specification._require_supported": "CTranslate2 implements a fixed set of Transformer variants.",
    "files.download._receive": "Check the address; `--mirror` of `tmt download` names another one, or a local folder.",
    "files.receiving.run": "`tmt` tries several times, and continues a download where it stopped. Check the network.",
    "errors.from_os_error": "It comes from the operating system. Check the path, its permissions and the disk.",
    "files.receiving._receive": "`tmt` tries again and continues where it stopped. If it gives up, repeat the command.",
    "files.receiving._start": "`tmt` then downloads the file from its beginning.",
    "training.checkpoint.verify": "The disk or a copy lost data. `tmt train` continues from the checkpoint before it.",
    "files.receiving._answer": "Check the network; `tmt download --mirror` names another address or a local folder.",
    "files.receiving._check_status": "`--mirror` of `tmt download` names another address, or a local folder.",
    "files.web_page.web_page": "The address has moved, or asks for a login.",
    "runtime.joining._lost": "When one process of `torchrun` fails, the others cannot continue.",
    "serving.run.open_socket": "The name after `--host` must lead to an address of this machine.",
    "serving.start.require_packages": "`./scripts/quickstart` installs them; by hand, it is the extra `serve`.",
    "runtime.weights._raise_misfits": "Config and weights come from different runs, or a key of `model` was changed.",
    "text.tokenizers.sentencepiece._untrainable": "SentencePiece needs enough different text for the vocabulary size.",
    "training.gradients.out_of_memory": "One batch and its intermediate results need more memory than the device has.",
    "training.run_directory.lock": "Two trainings in one folder would overwrite each other's checkpoints.",
    "training.run_directory.require_same": "A resumed run must continue the same experiment; few keys, such as "
    "`training.max_epochs`, may change.",
    "training.run_directory.require_same_corpus": "A resumed run must continue on the same data.",
    "training.trainer._diverged": "A number overflowed. Usually the learning rate is too high.",
    "workflows.export._require_agreement": "A float32 export has to give nearly the same translations as `tmt`, or at "
    "least the same scores; an export that does not is wrong.",
}


def group_of(home: str) -> str:
    """The title of the group that a function's messages belong to. Raises KeyError for a room without a group."""
    fitting = [
        (len(prefix), title)
        for title, _, prefixes in GROUPS
        for prefix in prefixes
        if f"{home}.".startswith(f"{prefix}.")
    ]
    if not fitting:
        raise KeyError(home)
    return max(fitting)[1]
