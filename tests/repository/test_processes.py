"""Test the check that no test leaves a process running."""

import subprocess
import sys
from pathlib import Path

import pytest
from helpers.processes import find_children


@pytest.mark.skipif(
    not list(Path("/proc/self/task").glob("*/children")), reason="needs Linux"
)
def test_a_running_process_is_found_until_it_ends():
    before = find_children()
    code = "print(flush=True); input()"
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    process.stdout.readline()  # has its command line now
    [(number, command)] = find_children() - before
    assert number == process.pid and command.endswith(code)
    process.communicate(b"\n")
    assert find_children() == before
