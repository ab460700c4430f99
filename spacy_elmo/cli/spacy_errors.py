"""Say in one sentence why one of spaCy's own commands has failed, where we know it.

spaCy shows a traceback for every error in `spacy train` and its other commands. If the
error is ours, or if its cause is, a sentence says more.
"""

import os
import re
import sys
from pathlib import Path
from types import TracebackType

from wasabi import msg

PROGRAMS = ("spacy", "spacy.exe", "spacy-script.py")
OUTPUT_OPTIONS = ("--output", "--output-path", "-o")  # of `spacy train`


def install_hook() -> None:
    """Explain errors that end one of spaCy's commands. The previous hook handles errors
    that cannot be explained, and all errors of other programs."""
    before = sys.excepthook

    def explain_error(
        kind: type[BaseException],
        error: BaseException,
        traceback: TracebackType | None,
    ) -> None:
        sentence = None
        if _is_spacy(sys.argv[0]) and not os.environ.get("SPACY_ELMO_TRACEBACK"):
            sentence = explain(error, sys.argv[1:])
        if sentence is None:
            before(kind, error, traceback)
        else:
            msg.fail(sentence)

    sys.excepthook = explain_error


def explain(error: BaseException, args: list[str]) -> str | None:
    """Return the cause of an error and its remedy; None if they are not known.

    args (list[str]): The arguments of the command.
    """
    # Not ModuleNotFoundError: where a module is missing, we raise an ImportError.
    ours = isinstance(error, ValueError | OSError) or type(error) is ImportError
    if ours and _is_ours(error.__traceback__):
        return str(error)
    if isinstance(error, ImportError) and "spacy.ko.KoreanTokenizer" in str(error):
        from ..text.tokenizers import MECAB, RULES

        return (
            "found spaCy's tokenizer for 'ko', which needs mecab in the operating "
            "system; expected mecab to be installed, or --nlp.tokenizer.@tokenizers "
            f"with '{RULES}' for words between spaces or '{MECAB}' for morphemes (pip "
            "install 'spacy-elmo[ko]')"
        )
    if isinstance(error, OSError) and (file := _find_file_as_output(error, args)):
        return (
            f"{file}: found a file; expected a folder to write to: give --output "
            "another name, or remove that file"
        )
    for path in map(Path, args):
        if path.suffix == ".cfg" and _is_for_pretraining(path):
            return (
                f"{path}: found a config for `spacy elmo pretrain`; expected a "
                "training config of spaCy, as `spacy elmo init-config tagging` writes "
                "it"
            )
    return None


def _is_spacy(program: str) -> bool:
    path = Path(program)
    return path.name in PROGRAMS or path.parts[-2:] == ("spacy", "__main__.py")


def _is_ours(traceback: TracebackType | None) -> bool:
    """Return whether a function of this package has raised the error."""
    name = ""
    while traceback is not None:
        name = traceback.tb_frame.f_globals.get("__name__", "")
        traceback = traceback.tb_next
    return name.partition(".")[0] == __package__.partition(".")[0]


def _find_file_as_output(error: OSError, args: list[str]) -> str | None:
    """Return the value of --output if it is a file and the error is about a path below
    it. `spacy train` only notices that when it first saves the pipeline."""
    pairs = [*zip(args, args[1:]), *(arg.split("=", 1) for arg in args if "=" in arg)]
    for name, value in pairs:
        below = Path(str(error.filename)).parents
        if name in OUTPUT_OPTIONS and Path(value) in below and Path(value).is_file():
            return value
    return None


def _is_for_pretraining(config: Path) -> bool:
    try:
        text = config.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    sections = set(re.findall(r"^\[([^\]]+)\]", text, re.MULTILINE))
    return "nlp" not in sections and {"training", "corpus", "vocab"} <= sections
