"""`spacy elmo probe`: measure what each layer alone knows.

The command function is long because typer takes each option as a parameter.
"""

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typer import Argument, Option
from wasabi import msg

from . import app
from .common_options import (
    BILM,
    GPU_ID,
    MAX_LIMIT,
    OUTPUT_JSON,
    STATIC,
    TITLE,
    exit_on_error,
    load_on_device,
)

if TYPE_CHECKING:
    from spacy.vocab import Vocab

    from ..analysis.layer_vectors import Progress
    from ..bilm import BiLMBase

DEV_EVERY = 10  # without DEV, every tenth text of TRAIN is used to test senses


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
    source: Path = BILM,
    train: Path = Argument(
        ...,
        metavar="TRAIN",
        help="The data to train on: a CoNLL-U or .spacy file with tags, or an XML file "
        "with senses in the usual format of WSD",
    ),
    dev: Path | None = Argument(
        None,
        metavar="DEV",
        help="The data to test on; for senses, by default every tenth text of TRAIN",
    ),
    task: Task = Option(
        Task.auto,
        "--task",
        help="What to predict; auto means senses if TRAIN is XML, else tags",
    ),
    attrs: list[Attr] = Option(
        [Attr.pos],
        "--attr",
        help="The kind of tag to predict; can be given several times",
    ),
    key_train: Path | None = Option(
        None,
        "--key-train",
        help="The file with the senses of TRAIN; by default, x.gold.key.txt beside "
        "x.data.xml",
    ),
    key_dev: Path | None = Option(
        None, "--key-dev", help="The same for the senses of DEV"
    ),
    static: str | None = STATIC,
    limit: int | None = Option(
        None,
        "--limit",
        min=1,
        max=MAX_LIMIT,
        help="Read at most this many sentences of each file",
    ),
    seed: int = Option(0, "--seed", min=0, help="The random seed of the classifiers"),
    title: str | None = TITLE,
    output: Path | None = OUTPUT_JSON,
    gpu_id: int = GPU_ID,
) -> None:
    """Measure how well each layer alone predicts tags or senses.

    Tags are predicted by a linear classifier on each layer and on their mean (mix), and
    for comparison by taking the most frequent tag of each word. Senses are predicted by
    the nearest mean vector of a sense, and for comparison by taking the most frequent
    sense.
    """
    from tqdm import tqdm

    from ..analysis.static_vectors import load_static_vectors
    from ..results import Probe, write_result

    if dev is not None and (str(dev) == "-" or dev == train):
        dev = None
    if task is Task.auto:
        task = Task.senses if train.suffix == ".xml" else Task.tags
    with exit_on_error():
        bilm = load_on_device(source, gpu_id)
        vocab = None if static is None else load_static_vectors(static)
        with tqdm(unit=" tokens", disable=None, leave=False) as bar:
            if task is Task.tags:
                names = [attr.value for attr in attrs]
                options = (names, vocab, limit, seed)
                results = probe_tag_files(bilm, train, dev, *options, bar.update)
            else:
                keys = (key_train, key_dev)
                options_ = (vocab, limit)
                results = probe_sense_files(
                    bilm, train, dev, *keys, *options_, bar.update
                )
        if output is not None:
            data = {
                "kind": "probe",
                "title": title or f"{source.name}: {train.name}",
                "bilm": str(source),
                "tasks": results,
            }
            write_result(output, Probe.model_validate(data))
    for result in results:
        print_result(result)


def probe_tag_files(
    bilm: "BiLMBase",
    train: Path,
    dev: Path | None,
    attrs: list[str],
    static: "Vocab | None",
    limit: int | None,
    seed: int,
    progress: "Progress",
) -> list[dict[str, Any]]:
    from ..analysis.tag_probe import probe_tags
    from ..analysis.tagged_sentences import read_tagged

    if dev is None:
        raise ValueError("found no DEV other than TRAIN; expected a second file")
    return probe_tags(
        bilm,
        read_tagged(train, limit),
        read_tagged(dev, limit),
        attrs=attrs,
        static=static,
        seed=seed,
        progress=progress,
    )


def probe_sense_files(
    bilm: "BiLMBase",
    train: Path,
    dev: Path | None,
    key_train: Path | None,
    key_dev: Path | None,
    static: "Vocab | None",
    limit: int | None,
    progress: "Progress",
) -> list[dict[str, Any]]:
    from ..analysis.sense_probe import probe_senses
    from ..analysis.wsd_files import default_key_path, read_keys, read_wsd

    train_keys = read_keys(key_train or default_key_path(train))
    if dev is not None:
        dev_keys = read_keys(key_dev or default_key_path(dev))
        sentences = read_wsd(train, limit), read_wsd(dev, limit)
    else:
        dev_keys = train_keys

        def is_dev(number: int) -> bool:
            return number % DEV_EVERY == DEV_EVERY - 1

        sentences = (
            read_wsd(train, limit, lambda number: not is_dev(number)),
            read_wsd(train, limit, is_dev),
        )
    keys = (train_keys, dev_keys)
    return [probe_senses(bilm, *sentences, *keys, static=static, progress=progress)]


def print_result(result: dict[str, Any]) -> None:
    unit = "instances" if result["task"] == "senses" else "words"
    msg.divider(
        f"{result['task']}: trained on {result['train']:,} {unit}, tested on "
        f"{result['dev']:,}"
    )
    best = max(row["accuracy"] for row in result["rows"])
    rows = [
        (
            row["name"],
            f"{row['accuracy']:.2%}",
            "best" if row["accuracy"] == best else "",
        )
        for row in result["rows"]
    ]
    header = ("predicted from", "accuracy", "")
    msg.table(rows, header=header, divider=True, aligns=("l", "r", "l"))
    if result.get("unseen"):
        msg.info(
            f"{result['unseen']:,} instances have a lemma that TRAIN does not contain. "
            "They count as errors in all rows."
        )
