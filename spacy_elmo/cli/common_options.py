"""Arguments and options that several commands share, and functions that handle them.

Whatever is slow to import is imported only when one of the functions is called.
"""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from typer import Abort, Argument, Exit, Option
from wasabi import msg

from ..regular_files import check_regular, open_regular

if TYPE_CHECKING:
    from ..bilm import BiLMBase
    from ..parts.part_runs import Cluster
    from ..text.tokenizers import Tokenization


# torch raises no MemoryError, but a RuntimeError with one of these texts.
TORCH_MEMORY = re.compile(
    r"(?<=DefaultCPUAllocator: )[^.]*bytes|Storage size calculation overflowed"
)
BEGINNING = 2000  # bytes of a file that tell which command has written it


def underscores_to_spaces(title: str | None) -> str | None:
    """Replace the underscores of a title with spaces, unless it already has spaces.

    Titles in a project.yml are written with underscores, because spaces would have to
    be quoted, which does not work in the same way on every system.
    """
    return title if title is None or " " in title else title.replace("_", " ")


def check_output_folder(path: Path | None) -> Path | None:
    """Exit with a sentence if a folder cannot be made or written to, before work begins
    that may take hours."""
    with exit_on_error():
        if path is not None:
            _check_place(path)
    return path


def check_output_file(path: Path | None) -> Path | None:
    """Exit with a sentence if a file cannot be written, before the work begins."""
    with exit_on_error():
        if path is not None:
            if path.is_dir():
                raise ValueError(f"{path}: found a folder; expected a file to write")
            _check_place(path.parent)
            if path.exists():
                check_regular(path)
    return path


def check_result_file(path: Path | None) -> Path | None:
    """Exit with a sentence if a file of results cannot be written, or would replace a
    file of something else."""
    check_output_file(path)
    keep_others(path, '{\n  "kind": ', '{\n  "forward": ')
    return path


def keep_others(path: Path | None, *marks: str) -> None:
    """Exit with a sentence if there is a file of something else at a path: one that is
    not empty and does not begin as the files of a command do.

    marks (str): Texts of which one is at the beginning of each such file.
    """
    with exit_on_error():
        if path is None or not path.exists():
            return
        with open_regular(path) as file:
            beginning = file.read(BEGINNING).decode("utf-8", "replace")
        if beginning and not any(mark in beginning for mark in marks):
            raise ValueError(
                f"{path}: found a file of something else, which is not overwritten; "
                "expected results of this command, or no such file"
            )


def _check_place(folder: Path) -> None:
    """Raise ValueError unless a folder can be written to, or be made in the nearest
    folder that exists."""
    for place in (folder, *folder.absolute().parents):
        if os.path.lexists(place):
            if not place.is_dir():
                raise ValueError(
                    f"{folder}: cannot be written because {place} is not a folder; "
                    "expected another name, or remove that file"
                )
            if not os.access(place, os.W_OK | os.X_OK):
                raise ValueError(
                    f"{folder}: cannot be written because of the permissions of {place}"
                    "; expected a folder of yours"
                )
            return


BILM_HELP = (
    "The biLM: a folder or an HDF5 file in any supported format, or the name of a "
    "bundled biLM, such as en_elmo_sm"
)
BILM = Argument(..., metavar="BILM", help=BILM_HELP)
TEXT = Argument(
    ...,
    metavar="TEXT",
    help="The text: a .txt, .jsonl, .parquet or .spacy file, a folder of such files, "
    "or a pattern such as 'texts/*.txt'",
)
TOKENIZED = Option(
    False,
    "--tokenized",
    help="The text is tokenized already: one sentence per line, words separated by "
    "spaces",
)
LANG = Option(
    None,
    "--lang",
    help="The language whose tokenizer is used, such as en; by default, the language "
    "that the biLM was trained on",
)
TOKENIZER = Option(
    None,
    "--tokenizer",
    help="A tokenizer registered with spaCy, such as spacy.Tokenizer.v1; by default, "
    "the one that the biLM was trained with",
)
ENCODING = Option(
    "utf-8",
    "--encoding",
    help="The encoding of the text, by a name that Python knows, such as cp949",
)
STATIC = Option(
    None,
    "--static",
    help="A pipeline with word vectors, such as en_core_web_md, to compare with",
)
TITLE = Option(
    None,
    "--title",
    callback=underscores_to_spaces,
    help="The title of the results in a report (My_title is shown as My title); by "
    "default, the names of the biLM and the data",
)
MAX_LIMIT = sys.maxsize  # the most items that itertools.islice can count
OUTPUT_FOLDER = Option(
    ...,
    "--output",
    "-o",
    callback=check_output_folder,
    help="The folder to write to",
)
OUTPUT_JSON = Option(
    None,
    "--output",
    "-o",
    callback=check_result_file,
    help="Also write the results to this JSON file, for `spacy elmo report`",
)
GPU_ID = Option(-1, "--gpu-id", "-g", help="The number of the GPU to use; -1: the CPU")
CLUSTER = Option(
    None,
    "--cluster",
    help="The address of a Ray cluster to compute on, such as 10.0.0.1:6379; 'local' "
    "starts one on this machine",
)
WORKERS = Option(
    None,
    "--workers",
    min=1,
    help="The number of workers of the cluster; by default, one for each core",
)

# Settings of a command that also accepts unknown options, such as --training.seed 1.
OVERRIDES = {"allow_extra_args": True, "ignore_unknown_options": True}


@contextmanager
def exit_on_error() -> Iterator[None]:
    """Print an error as one sentence, without a traceback, and exit with code 1.

    Errors of other kinds than those that our functions raise come from libraries, or
    are mistakes of ours. With the environment variable SPACY_ELMO_TRACEBACK, they are
    raised.
    """
    try:
        yield
    except (ValueError, OSError) as error:
        msg.fail(str(error), exits=1)
    except MemoryError as error:
        fail_for_memory(str(error))
    except (Exit, Abort):
        raise
    except Exception as error:
        if hasattr(error, "format_message"):  # click's, about a wrong option
            msg.fail(error.format_message(), exits=1)
        if found := TORCH_MEMORY.search(str(error)):
            fail_for_memory(found[0])
        if os.environ.get("SPACY_ELMO_TRACEBACK"):
            raise
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        msg.fail(
            f"Found an error that was not expected here: {reason}; with the "
            "environment variable SPACY_ELMO_TRACEBACK=1, the same command shows where",
            exits=1,
        )


def fail_for_memory(reason: str) -> None:
    """Print that there is too little memory, and exit with code 1."""
    reason = f" ({reason})" if reason else ""
    msg.fail(f"This needs more memory than there is{reason}", exits=1)


def say(text: str) -> None:
    """Print a line at once, even if the output is a file or a pipe."""
    print(text, flush=True)


def load_on_device(source: Path, gpu_id: int) -> "BiLMBase":
    """Load a biLM onto a GPU, or onto the CPU if gpu_id is -1."""
    from ..bilm.formats.sources import load_bilm

    return load_bilm(source, device=get_device(gpu_id))


def get_device(gpu_id: int) -> str:
    """Return the name by which torch knows a device, such as "cuda:0". Raise
    ValueError if there is no such device."""
    from ..bilm.extras import require_torch

    if gpu_id < 0:
        return "cpu"
    require_torch(f"--gpu-id {gpu_id}")
    import torch

    if not torch.cuda.is_available():
        raise ValueError(
            f"found --gpu-id {gpu_id}, but torch sees no GPU; expected no --gpu-id, or "
            "a machine with a GPU"
        )
    n_gpus = torch.cuda.device_count()
    if gpu_id >= n_gpus:
        raise ValueError(
            f"found --gpu-id {gpu_id}, but torch sees {n_gpus} GPUs; expected a number "
            "below that, and under torchrun no more processes than GPUs"
        )
    return f"cuda:{gpu_id}"


def get_cluster(
    address: str | None, workers: int | None, gpu_id: int = -1
) -> "Cluster | None":
    """Return the cluster that the options ask for; None for this process. Raise
    ValueError if they do not go together."""
    if address is None:
        if workers is not None:
            raise ValueError("found --workers without --cluster; expected both")
        return None
    if not address:
        raise ValueError("found an empty --cluster; expected an address, or 'local'")
    if gpu_id >= 0:
        raise ValueError("found --gpu-id with --cluster; its workers use CPUs only")
    from ..parts.part_runs import Cluster

    return Cluster(address, workers)


def get_tokenization(
    bilm: "BiLMBase",
    lang: str | None,
    tokenizer: str | None,
    tokenized: bool = False,
    encoding: str = "utf-8",
) -> "Tokenization":
    """Return the tokenization that the options ask for; see choose_tokenization."""
    from ..text.tokenizers import choose_tokenization

    training = bilm.config.training
    return choose_tokenization(
        training, lang, tokenizer, tokenized, encoding, say=msg.info
    )
