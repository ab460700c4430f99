"""Write a small JSON file with fingerprints, on which commands of a project can depend.

A project detects changes by hashing the files that a command depends on. That does not
work for patterns, for names of installed packages, or for texts too large to be read as
a whole. So a command depends on a small file with fingerprints instead.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def write_fingerprints(out: Path, data: Any) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n", "utf8")


def run(main: Callable[[str, Path], None], first: str) -> None:
    """Call main with the two arguments of the command line. If there is an error, exit
    with a message of one sentence.

    first (str): A description of the first argument; the second is the file to write.
    """
    if len(sys.argv) != 3:
        sys.exit(f"expected two arguments: {first}, and the file to write")
    try:
        main(sys.argv[1], Path(sys.argv[2]))
    except (ValueError, OSError) as error:
        sys.exit(str(error))
