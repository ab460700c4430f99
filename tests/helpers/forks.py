"""Fork processes, kill them and wait for them."""

import os
import random
import signal
import sys
import time

WRITING = os.O_WRONLY | os.O_RDWR


def fork(work):
    """Fork a process that does some work, and return its number. It ends with 0, or
    with 1 if the work raises an error."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        work()
        code = 0
    except OSError:
        pass
    finally:
        os._exit(code)


def wait(child, *, seconds=60):
    """Return the exit code of a process; None if it has to be killed because it does
    not end in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def kill_at_random(work, choose: random.Random, longest):
    """Do some work in a process that is killed after a random time.

    longest (float): The longest time, in seconds.
    RETURNS (int): Its exit code: that of the signal, unless it has ended before.
    """
    child = fork(work)
    time.sleep(choose.random() * longest)
    os.kill(child, signal.SIGKILL)
    return wait(child)


def kill_before_event(work, number):
    """Do some work in a process that is killed before it changes files or folders for
    the given time, counted from 0.

    RETURNS (int): Its exit code: 0 if it has ended before.
    """
    events = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod"}
    left = [number]

    def count(event, args):
        if event not in events or (event == "open" and not args[2] & WRITING):
            return
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1

    def hooked():
        sys.addaudithook(count)
        work()

    return wait(fork(hooked))
