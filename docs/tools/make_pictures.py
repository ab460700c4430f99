"""Make the pictures of the README and of docs/.

python docs/tools/make_pictures.py
python docs/tools/make_pictures.py senses
python docs/tools/make_pictures.py senses --word 눈 --bilm ko_elmo_morph_sm
"""

import argparse
from pathlib import Path

from chart_of_gains import draw_gains
from drawings import DRAWINGS
from map_of_senses import draw_senses

DOCS = Path(__file__).parents[1]
LANGUAGES = ("en", "ko")
# A word of assets/senses, and a biLM that separates its senses. The Korean biLMs do not
# separate those of a Korean word well enough for a picture.
WORD, BILM = "stick", "en_elmo_sm"


def main() -> None:
    args = parse_args()
    for lang in [args.lang] if args.lang else LANGUAGES:
        ending = "svg" if lang == "en" else f"{lang}.svg"
        if args.picture in ("all", "senses"):
            path = args.output / f"senses.{ending}"
            draw_senses(path, lang, args.word, args.bilm)
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
    parser.add_argument("--word", default=WORD, help="for the sense map")
    parser.add_argument("--bilm", default=BILM, help="for the sense map")
    return parser.parse_args()


if __name__ == "__main__":
    main()
