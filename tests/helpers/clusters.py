"""Makers of parts whose workers can be watched and killed. Workers of a Ray cluster
import this file."""

import os
import signal
import time

from spacy_elmo.embedding.embed_folder import VectorMaker

LONGEST_WAIT = 300  # seconds until all workers have started, also on a busy machine


class WatchedMaker(VectorMaker):
    """Leaves an empty file for each part that a worker begins: FIRST-PROCESS. No worker
    goes on before all of them have begun a part.

    log (Path): The folder of these files.
    workers (int): The number of workers.
    kill_at (int): The first sentence of the part whose worker is killed while it writes
        the file, once.
    """

    def __init__(self, bilm, log, workers, kill_at):
        super().__init__(bilm)
        log.mkdir(exist_ok=True)
        self.log, self.workers, self.kill_at = log, workers, kill_at

    def write(self, first, items, path):
        (self.log / f"{first}-{os.getpid()}").touch()
        end = time.monotonic() + LONGEST_WAIT
        while len(self.made()[1]) < self.workers:
            assert time.monotonic() < end, "a worker did not start"
            time.sleep(0.1)
        killed = self.log / "killed"
        if first == self.kill_at and not killed.exists():
            killed.touch()
            path.write_bytes(b"half of a p")
            os.kill(os.getpid(), signal.SIGKILL)
        return super().write(first, items, path)

    def made(self):
        """Return the first sentences of the parts begun, and the processes."""
        found = [p.name.split("-") for p in self.log.iterdir() if "-" in p.name]
        return sorted(int(first) for first, _ in found), {pid for _, pid in found}
