from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typer import Argument, Option
from wasabi import msg

from . import app
from .common_options import GPU_ID, TITLE

if TYPE_CHECKING:
    from spacy.vocab import Vocab

    from ..analysis.layer_vectors import Tell
    from ..bilm import BiLM

HELD_OUT = 10  # every tenth text


class Task(str, Enum):
    auto = "auto"
    tags = "tags"
    senses = "senses"


class Attr(str, Enum):
    pos = "pos"
    tag = "tag"
    morph = "morph"


@app.command("probe")
def probe_cli(
    source: Path = Argument(..., help="A biLM of any kind"),
    train: Path = Argument(..., help="CoNLL-U, .spacy, or XML with senses"),
    dev: Path | None = Argument(
        None, help="The same; for senses, by default every tenth text of TRAIN"
    ),
    task: Task = Option(Task.auto, "--task", help="By default senses if TRAIN is XML"),
    attrs: list[Attr] = Option(
        [Attr.pos], "--attr", help="Which tags; may be given more than once"
    ),
    key_train: Path | None = Option(
        None, "--key-train", help="By default x.gold.key.txt beside x.data.xml"
    ),
    key_dev: Path | None = Option(None, "--key-dev", help="The same for DEV"),
    static: str | None = Option(
        None, "--static", help="A pipeline with word vectors to compare with"
    ),
    limit: int | None = Option(
        None, "--limit", min=1, help="Sentences of TRAIN and of DEV to read"
    ),
    seed: int = Option(0, "--seed", help="Of the classifiers"),
    title: str | None = TITLE,
    output: Path | None = Option(None, "--output", "-o", help="JSON to write"),
    gpu_id: int = GPU_ID,
) -> None:
    """Measure what each layer alone knows of tags or senses.

    Tags: a linear classifier on each frozen layer and on their mean, beside the most
    frequent tag of each word. Senses: the nearest of the means of each sense, beside
    the most frequent sense.
    """
    from tqdm import tqdm

    from ..analysis.static_vectors import load_static
    from ..bilm.errors import SourceError
    from ..results import Probe, write_result
    from .common_options import load_on_device

    if dev is not None and (str(dev) == "-" or dev == train):
        dev = None
    if task is Task.auto:
        task = Task.senses if train.suffix == ".xml" else Task.tags
    try:
        bilm = load_on_device(source, gpu_id)
        vocab = None if static is None else load_static(static)
        with tqdm(unit=" tokens", disable=None, leave=False) as bar:
            if task is Task.tags:
                names = [attr.value for attr in attrs]
                tasks = tags(bilm, train, dev, names, vocab, limit, seed, bar.update)
            else:
                keys = (key_train, key_dev)
                tasks = senses(bilm, train, dev, *keys, vocab, limit, bar.update)
        data = {
            "kind": "probe",
            "title": title or f"{source.name}: {train.name}",
            "bilm": str(source),
            "tasks": tasks,
        }
        if output is not None:
            write_result(output, Probe.model_validate(data))
    except (SourceError, ValueError, OSError) as error:
        msg.fail(str(error), exits=1)
    for result in tasks:
        print_task(result)


def tags(
    bilm: "BiLM",
    train: Path,
    dev: Path | None,
    attrs: list[str],
    static: "Vocab | None",
    limit: int | None,
    seed: int,
    tell: "Tell",
) -> list[dict[str, Any]]:
    from ..analysis.tag_probe import probe_tags
    from ..analysis.tagged_sentences import read_tagged

    if dev is None:
        raise ValueError("tags need a DEV other than TRAIN; expected a second file")
    return probe_tags(
        bilm,
        read_tagged(train, limit),
        read_tagged(dev, limit),
        attrs=attrs,
        static=static,
        seed=seed,
        tell=tell,
    )


def senses(
    bilm: "BiLM",
    train: Path,
    dev: Path | None,
    key_train: Path | None,
    key_dev: Path | None,
    static: "Vocab | None",
    limit: int | None,
    tell: "Tell",
) -> list[dict[str, Any]]:
    from ..analysis.sense_probe import probe_senses
    from ..analysis.wsd_files import key_beside, read_keys, read_wsd

    train_keys = read_keys(key_train or key_beside(train))
    if dev is not None:
        dev_keys = read_keys(key_dev or key_beside(dev))
        parts = read_wsd(train, limit), read_wsd(dev, limit)
    else:
        dev_keys = train_keys
        last = HELD_OUT - 1
        parts = (
            read_wsd(train, limit, lambda number: number % HELD_OUT != last),
            read_wsd(train, limit, lambda number: number % HELD_OUT == last),
        )
    keys = (train_keys, dev_keys)
    return [probe_senses(bilm, *parts, *keys, static=static, tell=tell)]


def print_task(result: dict[str, Any]) -> None:
    unit = "instances" if result["task"] == "senses" else "words"
    msg.divider(f"{result['task']}: {result['train']:,} and {result['dev']:,} {unit}")
    best = max(row["accuracy"] for row in result["rows"])
    rows = [
        (
            row["name"],
            f"{row['accuracy']:.2%}",
            "best" if row["accuracy"] == best else "",
        )
        for row in result["rows"]
    ]
    msg.table(rows, header=("", "accuracy", ""), divider=True, aligns=("l", "r", "l"))
    if result.get("unseen"):
        msg.info(
            f"{result['unseen']:,} instances of lemmas that TRAIN has not: errors in "
            "all rows"
        )
