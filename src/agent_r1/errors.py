"""The base class of every error that a user can fix.

1. Code raises a subclass of `UserError`. Its message says what is wrong, where (file, row, key) and
   what to change or to type next.
2. A command prints that message alone and ends with exit code 1 (`agent_r1.cli.errors`).
3. Every other exception is a fault of the program and keeps its traceback.
"""

from __future__ import annotations


class UserError(Exception):
    """An error that a user can fix.

    The message says what is wrong, where (file, row, key), and the next command to type. Commands
    print it alone, without a traceback, and end with exit code 1.
    """
