"""Take a test part from prepared gold data.

Run as `python -m spacy_elmo.project.hold_out FOLDER OUT`. FOLDER has dev.spacy and
perhaps test.spacy. If it has both, they are copied to OUT. If not, every second doc of
dev.spacy goes to OUT/test.spacy and the others to OUT/dev.spacy, so that no doc by
which the best step of a training is chosen is also used to test.
"""

import shutil
import sys
from functools import partial
from pathlib import Path

from spacy.vocab import Vocab

from ..files import explain_errors, write_atomically
from ..gold.prepare_corpus import check_docs_target
from ..text.doc_files import load_docs, save_docs

DEV, TEST = "dev.spacy", "test.spacy"


def main(folder: Path, out: Path) -> None:
    if out.exists() and out.samefile(folder):
        raise ValueError(f"{out}: found the folder that is read; expected another one")
    for name in (DEV, TEST):
        check_docs_target(out / name)
    with explain_errors(out):
        out.mkdir(parents=True, exist_ok=True)
    if (folder / TEST).exists():
        for name in (DEV, TEST):
            write_atomically(out / name, partial(shutil.copyfile, folder / name))
        print(f"{out}: the test part is {folder / TEST}")
        return
    docs = load_docs(folder / DEV, Vocab())
    if len(docs) < 2:
        raise ValueError(
            f"{folder / DEV}: found {len(docs)} docs and no {TEST} beside it; expected "
            "a test file in the gold data, or at least 2 docs to divide"
        )
    write_atomically(out / DEV, partial(save_docs, docs[::2]))
    write_atomically(out / TEST, partial(save_docs, docs[1::2]))
    print(
        f"{out}: no {TEST}, so the {len(docs)} docs of {DEV} were divided into "
        f"{len(docs[::2])} to choose the best step and {len(docs[1::2])} to test"
    )


if __name__ == "__main__":
    try:
        main(*map(Path, sys.argv[1:]))
    except (ValueError, OSError) as error:
        sys.exit(str(error))
