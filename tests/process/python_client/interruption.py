"""Raises an exception at a chosen point of the Python client's code, as a signal handler would."""
import sys

import offload_client

PACKAGE = offload_client.__path__[0]


class Interruption:
    """Within it, the `number`-th point raises `kind`. Points are the calls, lines and returns of the
    client's functions, and with `opcodes` each instruction, too, except in older versions of Python:
    3.9 makes a SystemError of such exceptions. `raised` says whether there were as many points."""

    def __init__(self, number, kind, opcodes=False):
        self._left = number
        self._kind = kind
        self._opcodes = opcodes and sys.version_info >= (3, 11)
        self.raised = False

    def __enter__(self):
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_):
        sys.settrace(None)

    def _trace(self, frame, *_):
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        frame.f_trace_opcodes = self._opcodes
        if self._left == 0:
            self.raised = True
            raise self._kind("interruption")
        self._left -= 1
        return self._trace
