from pathlib import Path

from typer import Argument, Option
from wasabi import msg

from . import app


@app.command("prepare")
def prepare_cli(
    paths: list[Path] = Argument(
        ..., metavar="[SOURCE] OUTPUT", help="A folder of gold data; a folder to write"
    ),
    train: list[Path] | None = Option(None, "--train", help="File to train on"),
    dev: list[Path] | None = Option(None, "--dev", help="File for development"),
    test: list[Path] | None = Option(None, "--test", help="File for the test"),
    lang: str = Option("xx", "--lang", "-l", help="Whose tokenizer, for raw texts"),
    sentences: int | None = Option(
        None,
        "--sentences",
        "-n",
        min=1,
        help="How many make a document; by default 10 in CoNLL-U, 1 in lines of tags",
    ),
    spans_key: str | None = Option(
        None, "--spans-key", help="Also store entities as doc.spans[...], for spancat"
    ),
    limit: int | None = Option(
        None, "--limit", min=1, help="How many sentences or texts to read for training"
    ),
) -> None:
    """Make train.spacy, dev.spacy and test.spacy for `spacy train` from gold data.

    A SOURCE has files with train, dev or test in their names: CoNLL-U (.conllu, with
    entities as NE=B-PERSON in MISC), a word and its entity tag a line (.conll, .iob,
    .bio, .tsv), JSONL ({"text", "spans": [[start, end, label]]}, {"text", "cats"} or
    {"text", "label"}) or .spacy. Files named by options take the place of those in
    SOURCE.
    """
    from ..gold.prepare_corpus import prepare
    from ..gold.splits import find_parts

    if len(paths) > 2 or (len(paths) == 1 and not train):
        msg.fail("Expected SOURCE and OUTPUT, or --train FILE and OUTPUT", exits=1)
    try:
        parts = find_parts(paths[0]) if len(paths) == 2 else {}
        given = {"train": train, "dev": dev, "test": test}
        parts.update({part: files for part, files in given.items() if files})
        done = prepare(
            parts,
            paths[-1],
            lang=lang,
            sentences=sentences,
            spans_key=spans_key,
            limit=limit,
        )
    except (ValueError, OSError) as error:
        msg.fail(f"{error}", exits=1)
    for note in done.notes:
        msg.info(note[0].upper() + note[1:] + ".")
    names = ("", "docs", "sentences", "words", "tags", "entities", "labels")
    rows = []
    for part, counts in done.counts.items():
        sizes = [counts.docs, counts.sentences, counts.words, len(counts.tags)]
        sizes += [counts.entities, len(counts.labels)]
        rows.append([part, *("-" if x is None else f"{x:,}" for x in sizes)])
    msg.table(rows, header=names, divider=True, aligns=["l"] + ["r"] * 6)
    labels = done.counts["train"].labels.most_common()
    if labels:
        msg.text("Labels: " + ", ".join(f"{name} {n:,}" for name, n in labels))
    msg.good(f"{paths[-1]}")
