"""Let processes agree on errors and on what they have. Does not need torch."""

import json
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any


class Processes:
    """The processes that do one work together. This class is for a single process;
    Ranks is for several.

    size (int): The number of processes.
    rank (int): The number of this process, from 0 on.
    """

    size = 1
    rank = 0

    @property
    def first(self) -> bool:
        """Return whether this is the first process, which writes the files."""
        return self.rank == 0

    def gather_texts(self, text: str) -> list[str]:
        """Return the texts of all processes, in the order of the processes."""
        return [text]

    @contextmanager
    def together(self) -> Iterator[None]:
        """Do something in all processes. If an error with a message for the user occurs
        in one of them, raise it in all, so that none waits for another in vain. The
        block must not exchange anything with the other processes."""
        error: Exception | None = None
        try:
            yield
        except (OSError, ValueError) as caught:
            error = caught
        found = self.gather_texts("" if error is None else str(error) or repr(error))
        if error is not None:
            raise error
        for text in found:
            if text:
                raise ValueError(text)

    def check_same(self, facts: Mapping[str, Any]) -> None:
        """Raise ValueError, in all processes, if a fact is not the same in all of them.

        facts (Mapping[str, Any]): What this process has, by names for the user; JSON
            must support the values.
        """
        mine = json.dumps([socket.gethostname(), facts])
        found = [json.loads(text) for text in self.gather_texts(mine)]
        first, expected = found[0]
        for rank, (host, other) in enumerate(found):
            for name in {**expected, **other}:
                if other.get(name) != expected.get(name):
                    raise ValueError(
                        f"process {rank} on {host}: found {name} = {other.get(name)}; "
                        f"expected {expected.get(name)}, as process 0 on {first} has"
                    )
