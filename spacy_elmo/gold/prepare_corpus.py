"""Write the .spacy files that `spacy train` needs from gold data of any format."""

import os
import zlib
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from spacy.tokens import Doc

from ..files import explain_errors, one_writer, write_atomically
from ..regular_files import check_regular
from ..text.doc_files import save_docs
from ..text.tokenizers import load_language_or_rules
from .conversion import Conversion
from .gold_formats import get_format
from .line_files import DataError
from .splits import PATTERNS, Splits

DEV_EVERY = 10  # without dev files, every tenth doc of train is moved to dev


class Counts(NamedTuple):
    """The sizes of a split.

    sentences (int | None): None if the docs do not say where sentences begin.
    tags (Counter[str]): How often each fine-grained tag (token.tag_) occurs.
    labels (Counter[str]): How often each entity label occurs, and each category with a
        value of at least 0.5.
    """

    docs: int
    sentences: int | None
    words: int
    tags: "Counter[str]"
    entities: int
    labels: "Counter[str]"


class Prepared(NamedTuple):
    """The sizes of each split that was written, and notes that tell the user how the
    data was changed."""

    counts: dict[str, Counts]
    notes: list[str]


def prepare_corpus(
    splits: Splits,
    output: Path,
    *,
    lang: str = "xx",
    group_size: int | None = None,
    limit: int | None = None,
    spans_key: str | None = None,
) -> Prepared:
    """Write output/train.spacy, dev.spacy and, if there are test files, test.spacy.

    splits (Splits): The files of "train", "dev" and "test".
    lang (str): The language whose tokenizer splits raw texts.
    group_size (int | None): How many sentences are joined to one doc; by default, the
        group_size of the format.
    limit (int | None): Read at most this many sentences or texts for training.
    spans_key (str | None): Also store entities in doc.spans[spans_key].
    """
    if not splits.get("train"):
        raise ValueError(
            "found no file to train on; expected one with 'train' in its name, or "
            "--train FILE"
        )
    _check_target(splits, output)
    notes: list[str] = []
    is_raw = any(get_format(path).is_raw for paths in splits.values() for path in paths)
    say = notes.append if is_raw else lambda note: None
    conversion = Conversion(load_language_or_rules(lang, say), spans_key)
    docs = {
        split: _read_files(
            splits[split], conversion, group_size, limit if split == "train" else None
        )
        for split in PATTERNS
        if split in splits
    }
    notes += [f"{n:,} {change}" for change, n in conversion.changes.items()]
    if "dev" not in docs:
        docs["train"], docs["dev"] = _split_off_dev(docs["train"], splits["train"][0])
        notes.append(
            f"there are no dev files: {len(docs['dev']):,} of the docs, every "
            f"{DEV_EVERY}th, were moved from train to dev"
        )
    for doc in (doc for some in docs.values() for doc in some):
        for label in sorted(conversion.labels):
            doc.cats.setdefault(label, 0.0)
    with explain_errors(output):
        output.mkdir(parents=True, exist_ok=True)
    with one_writer(output):
        for split, some in docs.items():
            write_atomically(_path(output, split), partial(save_docs, some))
    return Prepared({split: count(some) for split, some in docs.items()}, notes)


def _path(output: Path, split: str) -> Path:
    return output / f"{split}.spacy"


def _check_target(splits: Splits, output: Path) -> None:
    """Raise ValueError if the output would replace a file that is read or that has no
    docs, or would have a test file of other data beside it."""
    inputs = [file for files in splits.values() for file in files]
    for split in PATTERNS:
        target = _path(output, split)
        if target.exists() and any(
            target.samefile(file) for file in inputs if file.exists()
        ):
            raise ValueError(
                f"{target}: found a file that is read and would be overwritten; "
                "expected another output folder"
            )
        check_docs_target(target)
        if split == "test" and split not in splits and target.exists():
            raise ValueError(
                f"{target}: found a test file, but none among the gold data, so it "
                "belongs to other data; move or delete it, or choose another folder"
            )


def check_docs_target(path: Path) -> None:
    """Raise ValueError if there is something other than a .spacy file at a path to
    which docs will be written."""
    if not os.path.lexists(path):
        return
    if path.is_symlink():
        raise ValueError(f"{path}: found a link; expected a .spacy file or nothing")
    check_regular(path)
    with path.open("rb") as file:
        start = file.read(1000)
    try:
        # An empty file is what older releases left on a full disk.
        is_ours = not start or b"attrs" in zlib.decompressobj().decompress(start, 100)
    except zlib.error:
        is_ours = False
    if not is_ours:
        raise ValueError(
            f"{path}: found a file without docs, which would be replaced; expected a "
            ".spacy file or nothing"
        )


def _read_files(
    paths: list[Path],
    conversion: Conversion,
    group_size: int | None,
    limit: int | None,
) -> list[Doc]:
    docs: list[Doc] = []
    n_read = 0
    for path in paths:
        format_ = get_format(path)
        left = None if limit is None else limit - n_read
        items = list(islice(format_.read(path, conversion), left))
        if not items and left != 0:
            raise DataError(path, None, "found no gold data; expected some")
        n_read += len(items)
        if format_.group_size is None:
            docs.extend(items)
        else:
            docs.extend(_join_groups(items, group_size or format_.group_size))
    return docs


def _join_groups(docs: list[Doc], size: int) -> Iterator[Doc]:
    for start in range(0, len(docs), size):
        yield Doc.from_docs(docs[start : start + size])


def _split_off_dev(docs: list[Doc], path: Path) -> tuple[list[Doc], list[Doc]]:
    if len(docs) < 2:
        problem = (
            "found a single doc, which cannot be split into train and dev; expected "
            "more data, --dev FILE, or a smaller number of --sentences per doc"
        )
        raise DataError(path, None, problem)
    dev = docs[DEV_EVERY - 1 :: DEV_EVERY] or docs[-1:]
    chosen = {id(doc) for doc in dev}
    return [doc for doc in docs if id(doc) not in chosen], dev


def count(docs: list[Doc]) -> Counts:
    has_sentences = all(doc.has_annotation("SENT_START") for doc in docs)
    labels: Counter[str] = Counter()
    for doc in docs:
        labels.update(ent.label_ for ent in doc.ents)
        labels.update(label for label, value in doc.cats.items() if value >= 0.5)
    return Counts(
        docs=len(docs),
        sentences=sum(len(list(doc.sents)) for doc in docs) if has_sentences else None,
        words=sum(not token.is_space for doc in docs for token in doc),
        tags=Counter(token.tag_ for doc in docs for token in doc if token.tag),
        entities=sum(len(doc.ents) for doc in docs),
        labels=labels,
    )
