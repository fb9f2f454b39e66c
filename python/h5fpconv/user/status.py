"""Exit statuses, and the errors that carry them to the end of the program.

SPDX-License-Identifier: MIT
"""
import enum


class Status(enum.IntEnum):
    """What h5fpconv returns to the shell."""

    OK = 0
    DIFFERENT = 1
    USAGE = 2
    INPUT = 3
    OUTPUT = 4
    INTERRUPTED = 130
    READER_GONE = 141
    TERMINATED = 143


STATUS_TEXT: dict[Status, str] = {
    Status.OK: "done; with diff: no difference beyond the given bounds",
    Status.DIFFERENT: "with diff: a difference beyond the given bounds",
    Status.USAGE: "an option or argument is wrong",
    Status.INPUT: "an input file is missing, damaged or not what it should be",
    Status.OUTPUT: "the output cannot be written; nothing is left under its name; or the result "
                   "cannot be printed",
    Status.INTERRUPTED: "interrupted (SIGINT); nothing is left under the output's name",
    Status.READER_GONE: "nobody reads what it prints any more, as with `head'; files are complete",
    Status.TERMINATED: "ended by SIGTERM; nothing is left under the output's name",
}


def status_epilog() -> str:
    """The table of exit statuses, for --help and the manual."""
    return "\n".join(["exit status:"] +
                     [f"  {status.value:<5} {text}" for status, text in STATUS_TEXT.items()])


class CommandError(Exception):
    """Ends the command with a message for the user and a status."""

    status = Status.INPUT


class UsageError(CommandError):
    """An option or argument is wrong."""

    status = Status.USAGE


class InputError(CommandError):
    """An input file is missing, damaged or not what it should be."""

    status = Status.INPUT


class OutputError(CommandError):
    """The output cannot be written."""

    status = Status.OUTPUT


class ReaderGone(CommandError):
    """Standard output is a pipe that nobody reads any more: no fault to speak of."""

    status = Status.READER_GONE
