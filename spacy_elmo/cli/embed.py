from collections import Counter
from pathlib import Path

from typer import Argument
from wasabi import msg

from . import app
from .common_options import GPU_ID, LANG, TOKENIZED, TOKENIZER


@app.command("embed")
def embed_cli(
    source: Path = Argument(..., help="A biLM of any kind"),
    text: str = Argument(..., help="A file, a folder or a pattern"),
    out: Path = Argument(..., help="The .hdf5 or .parquet file to write"),
    tokenized: bool = TOKENIZED,
    lang: str | None = LANG,
    tokenizer: str | None = TOKENIZER,
    gpu_id: int = GPU_ID,
) -> None:
    """Write the vectors of a text: all layers of every token of every sentence.

    An interrupted run goes on where it was when it is started again.
    """
    from tqdm import tqdm

    from ..bilm.errors import SourceError
    from ..embedding.embed_file import check_target, embed_file
    from ..text.problems import Problems, say_problems
    from ..text.sentences import load_sentences
    from .common_options import get_tokenization, load_on_device

    problems: Problems = Counter()
    try:
        check_target(out)
        bilm = load_on_device(source, gpu_id)
        tokenization = get_tokenization(bilm, lang, tokenizer, tokenized)
        sentences = load_sentences([text], tokenization, problems)
        with tqdm(unit=" sentences", disable=None, leave=False) as bar:
            n_sentences = embed_file(
                bilm,
                sentences,
                out,
                on_progress=lambda n_done: bar.update(n_done - bar.n),
            )
    except (SourceError, ValueError, OSError) as error:
        msg.fail(str(error), exits=1)
    say_problems(problems, msg.warn)
    msg.good(f"Wrote the vectors of {n_sentences:,} sentences to {out}")
