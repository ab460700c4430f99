"""`spacy elmo prepare`: convert gold data to .spacy files."""

from pathlib import Path
from typing import TYPE_CHECKING

from typer import Argument, Option
from wasabi import msg

from . import app
from .common_options import MAX_LIMIT, check_output_folder, exit_on_error

if TYPE_CHECKING:
    from ..gold.prepare_corpus import Prepared

HEADER = (
    "",
    "docs",
    "sentences",
    "words",
    "distinct tags",
    "entities",
    "distinct labels",
)


@app.command("prepare")
def prepare_cli(
    paths: list[Path] = Argument(
        ...,
        metavar="[SOURCE] OUTPUT",
        help="The folder with the gold data (not needed with --train), and the folder "
        "to write to",
    ),
    train: list[Path] | None = Option(
        None, "--train", help="A file to train on; can be given several times"
    ),
    dev: list[Path] | None = Option(
        None, "--dev", help="A file for development; can be given several times"
    ),
    test: list[Path] | None = Option(
        None, "--test", help="A file for the final test; can be given several times"
    ),
    lang: str = Option(
        "xx", "--lang", "-l", help="The language whose tokenizer splits raw texts"
    ),
    group_size: int | None = Option(
        None,
        "--sentences",
        "-n",
        min=1,
        help="How many sentences make one doc; by default, 10 for CoNLL-U and 1 "
        "for files with one word per line",
    ),
    spans_key: str | None = Option(
        None,
        "--spans-key",
        help="Also store the entities in doc.spans[SPANS_KEY], for a spancat",
    ),
    limit: int | None = Option(
        None,
        "--limit",
        min=1,
        max=MAX_LIMIT,
        help="Read at most this many sentences for training",
    ),
) -> None:
    """Convert gold data to train.spacy, dev.spacy and test.spacy for `spacy train`.

    SOURCE contains files with train, dev or test in their names. Their formats are:
    CoNLL-U (.conllu; entities in MISC, such as NE=B-PERSON); one word and its entity
    tag per line (.conll, .iob, .bio, .tsv); one JSON object per line (.jsonl) with
    {"text", "spans": [[start, end, label]]}, {"text", "cats"} or {"text", "label"};
    or .spacy. Files that are given by options replace those of SOURCE. Without a dev
    file, every tenth doc is moved from train to dev.
    """
    from ..gold.prepare_corpus import prepare_corpus
    from ..gold.splits import find_splits

    if len(paths) > 2 or (len(paths) == 1 and not train):
        msg.fail("Expected SOURCE and OUTPUT, or --train FILE and OUTPUT", exits=1)
    output = paths[-1]
    check_output_folder(output)
    with exit_on_error():
        splits = find_splits(paths[0]) if len(paths) == 2 else {}
        given = {"train": train, "dev": dev, "test": test}
        splits.update({split: files for split, files in given.items() if files})
        warn_of_files_used_twice(splits)
        prepared = prepare_corpus(
            splits,
            output,
            lang=lang,
            group_size=group_size,
            spans_key=spans_key,
            limit=limit,
        )
    print_counts(prepared)
    msg.good(
        f"Wrote {', '.join(f'{split}.spacy' for split in prepared.counts)} to {output}"
    )


def warn_of_files_used_twice(splits: dict[str, list[Path]]) -> None:
    """Warn of files that are in two splits."""
    found: dict[Path, str] = {}
    for split, files in splits.items():
        for file in files:
            other = found.setdefault(file.resolve(), split)
            if other != split:
                msg.warn(
                    f"{file} is given for {other} and for {split}: scores on data that "
                    "were trained on are too high."
                )


def print_counts(prepared: "Prepared") -> None:
    for note in prepared.notes:
        msg.info(note[0].upper() + note[1:] + ".")
    rows = []
    for split, counts in prepared.counts.items():
        sizes = [counts.docs, counts.sentences, counts.words, len(counts.tags)]
        sizes += [counts.entities, len(counts.labels)]
        rows.append([split, *("-" if x is None else f"{x:,}" for x in sizes)])
    msg.table(rows, header=HEADER, divider=True, aligns=["l"] + ["r"] * 6)
    labels = prepared.counts["train"].labels.most_common()
    if labels:
        msg.text(
            "Labels in train: " + ", ".join(f"{label} {n:,}" for label, n in labels)
        )
