"""Parse lines of JSON."""

import json
from typing import Any

import srsly


def parse_json(line: str) -> Any:
    """Parse a line of JSON. If it is not JSON, ValueError or RecursionError is
    raised."""
    try:
        return srsly.json_loads(line)
    except ValueError:
        return json.loads(line)  # slower, but knows integers of more than 64 bits
