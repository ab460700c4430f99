"""`spacy elmo evaluate`: measure the perplexity of a biLM."""

from pathlib import Path

from typer import Argument, Option
from wasabi import msg

from . import app
from .common_options import (
    BILM_HELP,
    ENCODING,
    GPU_ID,
    LANG,
    OUTPUT_JSON,
    TOKENIZED,
    TOKENIZER,
    check_output_file,
    exit_on_error,
    get_tokenization,
    keep_others,
    load_on_device,
)


@app.command("evaluate")
def evaluate_cli(
    source: Path = Argument(
        ..., metavar="BILM", help=f"{BILM_HELP}; it must have a softmax layer"
    ),
    texts: list[str] = Argument(
        ...,
        metavar="TEXT...",
        help="The texts: files, folders or patterns such as 'texts/*.txt'",
    ),
    output: Path | None = OUTPUT_JSON,
    surprisal: Path | None = Option(
        None,
        "--surprisal",
        callback=check_output_file,
        help="Also write a table with the surprisal of each word to this file (.tsv)",
    ),
    stream: bool = Option(
        False,
        "--stream",
        help="Carry the LSTM states from each sentence to the next one",
    ),
    tokenized: bool = TOKENIZED,
    lang: str | None = LANG,
    tokenizer: str | None = TOKENIZER,
    encoding: str = ENCODING,
    n_process: int = Option(
        1, "--n-process", help="How many processes tokenize the text"
    ),
    gpu_id: int = GPU_ID,
) -> None:
    """Measure the perplexity of a text in both directions, with the full softmax.

    Each sentence starts from zero states, as when vectors are computed. A sentence of
    n words has n + 1 predictions per direction: its words, and where it ends (forward)
    or begins (backward).
    """
    from ..pretrain.surprisal_table import COLUMNS
    from ..pretrain.text_perplexity import measure_text
    from ..results import Perplexity, write_result

    keep_others(surprisal, "\t".join(COLUMNS))
    with exit_on_error():
        if surprisal and output and surprisal.resolve() == output.resolve():
            raise ValueError(
                f"found {output} for --output and --surprisal; expected two files"
            )
        if surprisal is not None and stream:
            raise ValueError(
                "found --surprisal and --stream; expected one of them, because "
                "surprisal is computed for each sentence alone"
            )
        bilm = load_on_device(source, gpu_id)
        tokenization = get_tokenization(bilm, lang, tokenizer, tokenized, encoding)
        result = measure_text(
            bilm,
            texts,
            tokenization,
            carry=stream,
            n_process=n_process,
            surprisal=surprisal,
            say=msg.warn,
        )
        data = result.as_dict()
        if output is not None:
            write_result(output, Perplexity.model_validate(data))
    shown = {
        key: f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"
        for key, value in data.items()
    }
    msg.table(shown)
