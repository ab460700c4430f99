"""Results as files."""

from pathlib import Path
from typing import Any

import srsly

from ..bilm.formats.build import write_atomically


def write_json(path: Path, data: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, lambda part: srsly.write_json(part, data))
