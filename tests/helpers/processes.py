"""Find processes that tests have started."""

from pathlib import Path

# Python starts this one itself, and keeps it until it ends.
OWN = "multiprocessing.resource_tracker"


def find_children():
    """Return the id and the command of each running process that this process has
    started. Only Linux can tell; elsewhere the set is empty."""
    found = set()
    for path in Path("/proc/self/task").glob("*/children"):
        for number in path.read_text().split():
            try:
                data = Path(f"/proc/{number}/cmdline").read_bytes()
            except OSError:  # it has just ended
                continue
            command = data.replace(b"\0", b" ").decode(errors="replace").strip()
            if command and OWN not in command:
                found.add((int(number), command))
    return found
