"""Freezes one thread of a program, as a GPU that hangs does; its other threads continue."""
import contextlib
import ctypes
import os
from pathlib import Path

from harness import PATIENCE, wait_until

# <sys/ptrace.h>, <sys/wait.h>
PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT = 17, 0x4206, 0x4207
WAIT_FOR_THREADS = 0x40000000  # __WALL

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_libc.ptrace.restype = ctypes.c_long


def _ptrace(request, thread):
    if _libc.ptrace(request, thread, None, None) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def thread_of(program, name):
    """Returns the id of the thread with that name."""
    for task in Path(f"/proc/{program.pid}/task").iterdir():
        if (task / "comm").read_text().strip() == name:
            return int(task.name)
    raise AssertionError(f"{program.name} has no thread {name}")


class FrozenThread:
    """A thread that is stopped from its construction until thaw(). Only the Python thread that created it may use
    it (ptrace(2)). A process that ends meanwhile is gone only after wait_for_end() or thaw()."""

    def __init__(self, program, name="worker-0"):
        self.id = thread_of(program, name)
        _ptrace(PTRACE_SEIZE, self.id)
        _ptrace(PTRACE_INTERRUPT, self.id)
        wait_until(lambda: os.waitpid(self.id, WAIT_FOR_THREADS | os.WNOHANG)[0],
                   f"thread {name} of {program.name} stops")

    def thaw(self):
        with contextlib.suppress(ProcessLookupError):  # its process has ended
            _ptrace(PTRACE_DETACH, self.id)

    def wait_for_end(self):
        """Waits until the thread has ended with its process."""
        wait_until(lambda: os.waitpid(self.id, WAIT_FOR_THREADS | os.WNOHANG)[0],
                   f"thread {self.id} ends", 2 * PATIENCE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.thaw()
