"""Make the pictures of the README and of docs/.

python docs/tools/make_pictures.py
python docs/tools/make_pictures.py senses --lang ko --word 눈 --bilm BILM
"""

import argparse
from pathlib import Path

from chart_of_gains import draw_gains
from drawings import DRAWINGS
from map_of_senses import draw_senses

DOCS = Path(__file__).parents[1]
LANGUAGES = ("en", "ko")


def main() -> None:
    args = parse_args()
    if args.picture in ("all", "senses"):
        draw_senses(args.output, args.lang, args.word, args.bilm, args.vectors)
    for lang in LANGUAGES:
        ending = "svg" if lang == "en" else f"{lang}.svg"
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
    parser.add_argument("--lang", default="en", help="of the word in the sense map")
    parser.add_argument("--word", default="stick", help="a word in assets/senses")
    parser.add_argument("--bilm", help="a biLM; by default the bundled one")
    parser.add_argument(
        "--vectors", help='a layer, or for example "context 2"; by default the top one'
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
