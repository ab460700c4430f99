"""`spacy elmo init-config`: write a config to train or pretrain with."""

import shlex
from enum import Enum
from pathlib import Path

from typer import Argument, Option
from wasabi import Printer, msg

from ..config_templates import BASELINE, PRETRAIN, TASKS, tasks_with
from . import app
from .common_options import check_output_file, exit_on_error

Task = Enum("Task", {name: name for name in (PRETRAIN, *TASKS)})  # type: ignore[misc]


@app.command("init-config")
def init_config_cli(
    task: Task = Argument(..., help="What to train"),
    output: Path = Argument(
        ...,
        metavar="OUT.cfg",
        help="The file to write; '-' prints the config",
        allow_dash=True,
    ),
    lang: str = Option("en", "--lang", "-l", help="The language of the text"),
    bilm: str | None = Option(
        None,
        "--bilm",
        help="The biLM: a folder, an HDF5 file or a bundled name; by default, the "
        "bundled one of the language. For pretrain, the biLM to start from",
    ),
    gpu: bool = Option(False, "--gpu", "-G", help="Choose batch sizes for a GPU"),
    baseline: bool = Option(
        False, "--baseline", help="spaCy's own model without ELMo, to compare with"
    ),
    fast: bool = Option(
        False,
        "--fast",
        help=f"With ELMo, faster and smaller; for {', '.join(tasks_with('elmo_fast'))}",
    ),
    accurate: bool = Option(
        False,
        "--accurate",
        help="With ELMo, larger, meant to be more accurate; for "
        + ", ".join(tasks_with("elmo_accurate")),
    ),
    force: bool = Option(False, "--force", "-F", help="Overwrite an existing file"),
) -> None:
    """Write a complete config, with comments, that works with this package alone.

    It has the settings that the figures in the documentation were measured with. Only
    the language, the tokenizer, the biLM and the batch sizes are chosen by the options.
    """
    from ..config_templates import has_bundled_bilm, make_training_config
    from ..files import write_atomically

    to_stdout = str(output) == "-"
    printer = Printer(no_print=to_stdout)
    if not to_stdout:
        check_output_file(output)
    with exit_on_error():
        if output.exists() and not to_stdout and not force:
            raise ValueError(f"{output}: this exists; --force overwrites it")
        variant = find_variant(task.value, baseline, fast, accurate)
        command = make_command(task.value, output, gpu)
        if task.value == PRETRAIN:
            from ..pretrain.pretrain_template import make_pretrain_config

            text = make_pretrain_config(command, lang=lang, bilm=bilm, gpu=gpu)
        else:
            text = make_training_config(
                task.value,
                command,
                lang=lang,
                bilm=bilm,
                gpu=gpu,
                variant=variant,
            )
        if to_stdout:
            print(text, end="")
        else:
            output.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(output, lambda part: part.write_text(text, "utf-8"))
    if task.value != PRETRAIN and bilm is None and not has_bundled_bilm(lang):
        msg.warn(
            f"No biLM for '{lang}' comes with the package, so the English one would be "
            "used. Pretrain your own, and give it with --elmo.bilm.",
            show=not to_stdout,
        )
    printer.good(f"Wrote {output}")
    if not to_stdout:
        print(f"Now run:\n{command}")  # on one line, because the printer would break it


def find_variant(task: str, baseline: bool, fast: bool, accurate: bool) -> str:
    """Return the variant that the options choose. Raise ValueError if the task does not
    have it."""
    given = {BASELINE: baseline, "elmo_fast": fast, "elmo_accurate": accurate}
    chosen = [variant for variant, is_given in given.items() if is_given]
    options = ["--" + variant.removeprefix("elmo_") for variant in chosen]
    if len(chosen) > 1:
        raise ValueError(f"found {' and '.join(options)}; expected one of them")
    if not chosen:
        return "elmo"
    tasks = tasks_with(chosen[0])
    if task not in tasks:
        raise ValueError(
            f"found {options[0]} with {task}; expected one of {', '.join(tasks)}"
        )
    return chosen[0]


def make_command(task: str, output: Path, gpu: bool) -> str:
    """Return the command to run next. Its data files are examples."""
    file = shlex.quote(str(output)) if str(output) != "-" else "config.cfg"
    if task == PRETRAIN:
        start, data = "elmo pretrain", "--paths.raw_text my_text.txt"
    else:
        start, data = "train", "--paths.train train.spacy --paths.dev dev.spacy"
    gpu_option = " --gpu-id 0" if gpu else ""
    return f"python -m spacy {start} {file} --output training/{task} {data}{gpu_option}"
