"""Make the pictures of the README and of docs/.

python docs/tools/make_pictures.py
python docs/tools/make_pictures.py senses
python docs/tools/make_pictures.py senses --lang ko --word 눈 --output DIR
"""

import argparse
from pathlib import Path

from chart_of_gains import draw_gains
from drawings import DRAWINGS
from map_of_senses import draw_senses

DOCS = Path(__file__).parents[1]
LANGUAGES = ("en", "ko")
# For each language of the pages, a word and a biLM that separates its senses.
SENSE_MAPS = {"en": ("stick", "en_elmo_sm"), "ko": ("인사", "ko_elmo_morph_sm")}


def main() -> None:
    args = parse_args()
    for lang in [args.lang] if args.lang else LANGUAGES:
        ending = "svg" if lang == "en" else f"{lang}.svg"
        if args.picture in ("all", "senses"):
            word, bilm = SENSE_MAPS[lang]
            draw_senses(
                args.output / f"senses.{ending}",
                lang,
                args.word or word,
                args.bilm or bilm,
            )
        if args.picture in ("all", "gains"):
            table = DOCS / "performance.md"
            draw_gains(args.output / f"gains.{ending}", table, lang)
        if args.picture in ("all", "drawings"):
            for name, draw in DRAWINGS.items():
                draw(args.output / f"{name}.{ending}", lang)


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = ["all", "senses", "gains", "drawings"]
    parser.add_argument("picture", nargs="?", default="all", choices=names)
    parser.add_argument("--output", type=Path, default=DOCS / "images")
    parser.add_argument("--lang", choices=LANGUAGES, help="by default both")
    parser.add_argument("--word", help="for the sense map: a word in assets/senses")
    parser.add_argument("--bilm", help="for the sense map")
    return parser.parse_args()


if __name__ == "__main__":
    main()
