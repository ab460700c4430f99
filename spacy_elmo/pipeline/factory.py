"""`nlp.add_pipe("elmo")`. spaCy imports this whenever a pipeline is made."""

from spacy.language import Language
from thinc.api import Model

from ..layers.elmo_model import configure, get_shim
from ..layers.settings import Settings, Storage
from .component import Elmo

DEFAULT_CONFIG = {
    "model": {"@architectures": "spacy-elmo.ElmoModel.v1"},
    "bilm": None,
    "mix": None,
    "surprisal": False,
    **Settings().to_dict(),
    **Storage().to_dict(),
}


@Language.factory(
    "elmo",
    assigns=[
        "doc.tensor",
        "doc._.elmo",
        "doc._.elmo_surprisal",
        "token._.elmo",
        "token._.elmo_layers",
        "token._.elmo_surprisal",
        "span._.elmo",
    ],
    default_config=DEFAULT_CONFIG,
)
def make_elmo(
    nlp: Language,
    name: str,
    model: Model,
    bilm: str | None,
    mix: list[float] | None,
    surprisal: bool,
    frozen: bool,
    segments: str,
    window: int,
    overlap: int,
    stateful: bool,
    max_batch_tokens: int,
    store_layers: str,
    store_dtype: str,
    cache_layers: str,
    cache_memory_mb: int,
    cache_folder: str | None,
) -> Elmo:
    """Make an `elmo` component.

    model (Model[list[Doc], Layers]): As in the default config.
    bilm (str | None): What load_bilm takes: a folder, a file or a bundled name, read
        when the weights are first needed, and never once they came with a saved
        pipeline. None for the bundled biLM of the pipeline's language.
    mix (list[float] | None): The share of each layer in doc.tensor, from the token
        vectors to the top; None for a plain mean.
    surprisal (bool): Set doc._.elmo_surprisal too, for which the pipeline carries the
        biLM's softmax.
    frozen, segments, window, overlap, stateful, max_batch_tokens: see Settings.
    store_layers, store_dtype, cache_layers, cache_memory_mb, cache_folder: see Storage.
    """
    if surprisal and stateful:
        raise ValueError(
            "elmo: found surprisal with stateful; expected one of them: surprisal is "
            "of segments by themselves"
        )
    settings = Settings(frozen, segments, window, overlap, stateful, max_batch_tokens)
    storage = Storage(
        store_layers, store_dtype, cache_layers, cache_memory_mb, cache_folder
    )
    get_shim(model).source = bilm
    get_shim(model).lang = nlp.lang
    get_shim(model).keep_softmax = surprisal
    configure(model, settings)
    elmo = Elmo(nlp.vocab, model, name, mix=mix, storage=storage)
    elmo.watch(nlp)
    return elmo
