"""Makers of parts whose workers can be watched and killed. Workers of a Ray cluster
import this file."""

import os
import signal
import time

from spacy_elmo.embedding.embed_folder import VectorMaker


class WatchedMaker(VectorMaker):
    """Leaves an empty file for each part that a worker begins: FIRST-PROCESS.

    log (Path): The folder of these files.
    kill_at (int | None): The first sentence of the part whose worker is killed while it
        writes the file, once.
    """

    def __init__(self, bilm, log, kill_at=None):
        super().__init__(bilm)
        log.mkdir(exist_ok=True)
        self.log, self.kill_at = log, kill_at

    def write(self, first, items, path):
        (self.log / f"{first}-{os.getpid()}").touch()
        killed = self.log / "killed"
        if first == self.kill_at and not killed.exists():
            killed.touch()
            path.write_bytes(b"half of a p")
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.2)  # so that every worker gets some parts
        return super().write(first, items, path)

    def made(self):
        """Return the first sentences of the parts begun, and the processes."""
        found = [p.name.split("-") for p in self.log.iterdir() if "-" in p.name]
        return sorted(int(first) for first, _ in found), {pid for _, pid in found}
