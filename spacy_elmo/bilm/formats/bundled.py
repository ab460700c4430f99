"""Find the biLMs that come with the package."""

import warnings
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "bundled"
LANGUAGES = {"en": "en_elmo_sm", "ko": "ko_elmo_sm"}
# For pipelines whose tokens are morphemes.
MORPHEMES = {"ko": "ko_elmo_morph_sm"}


def bundled_names() -> list[str]:
    """List the names that can be given instead of a path to a biLM."""
    return sorted([*LANGUAGES.values(), *MORPHEMES.values()])


def find_bundled(name: str) -> Path | None:
    """Return the folder of a bundled biLM; None if no bundled biLM has that name."""
    return FOLDER / name if name in bundled_names() else None


def bundled_for(lang: str, *, morphemes: bool = False) -> str:
    """Return the name of the bundled biLM for a pipeline's language. For a language
    without a bundled biLM, warn and return the English one.

    morphemes (bool): Whether the tokens of the pipeline are morphemes.
    """
    if lang not in LANGUAGES:
        warnings.warn(
            f"elmo: no biLM was given and none for '{lang}' comes with spacy-elmo, so "
            f"the English one ({LANGUAGES['en']}) is used, which knows little of other "
            "languages; pretrain your own with 'python -m spacy elmo pretrain' and "
            "name it with the setting 'bilm'",
            UserWarning,
            stacklevel=2,
        )
        lang = "en"
    return (morphemes and MORPHEMES.get(lang)) or LANGUAGES[lang]
