from pathlib import Path

from typer import Argument, Option
from wasabi import msg

from . import app
from .common_options import GPU_ID, LANG, TOKENIZED, TOKENIZER


@app.command("evaluate")
def evaluate_cli(
    source: Path = Argument(..., metavar="BILM", help="A biLM with a softmax"),
    texts: list[str] = Argument(..., metavar="TEXT...", help="Files or folders"),
    output: Path | None = Option(None, "--output", "-o", help="JSON to write"),
    stream: bool = Option(False, "--stream", help="Carry states through the text"),
    tokenized: bool = TOKENIZED,
    lang: str | None = LANG,
    tokenizer: str | None = TOKENIZER,
    n_process: int = Option(1, "--n-process", help="For tokenising"),
    gpu_id: int = GPU_ID,
) -> None:
    """Measure the perplexity of both directions on a text.

    With the full softmax, each sentence on its own from zero states, as in use: n + 1
    predictions a direction, the boundary included.
    """
    from ..bilm.errors import SourceError
    from ..pretrain.text_perplexity import measure_text
    from ..results import Perplexity, write_result
    from .common_options import get_tokenization, load_on_device

    try:
        bilm = load_on_device(source, gpu_id)
        tokenization = get_tokenization(bilm, lang, tokenizer, tokenized)
        result = measure_text(
            bilm, texts, tokenization, carry=stream, n_process=n_process, say=msg.warn
        )
    except (SourceError, ValueError, OSError) as error:
        msg.fail(f"{error}", exits=1)
    data = result.as_dict()
    shown = {
        key: f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"
        for key, value in data.items()
    }
    msg.table(shown)
    if output is not None:
        write_result(output, Perplexity.model_validate(data))
