"""The command line: the parser of all commands, and how a command ends.

SPDX-License-Identifier: MIT
"""
import argparse
import importlib
import os
import signal
import sys
from collections.abc import Iterable, Sequence
from types import FrameType
from typing import NoReturn

import fpconv
import h5py

from h5fpconv.commands import COMMANDS
from h5fpconv.user.console import SHOW_CURSOR, print_error, printing
from h5fpconv.user.output import remove_unfinished
from h5fpconv.user.status import CommandError, ReaderGone, Status, status_epilog

SIGNALS = {signal.SIGINT: (Status.INTERRUPTED, "interrupted"),
           signal.SIGTERM: (Status.TERMINATED, "ended by SIGTERM")}


def end_by_signal(number: int, frame: FrameType | None) -> NoReturn:
    """Removes unfinished output and ends the process, there and then.

    An exception, raised wherever the main thread is, would leave locks of the thread
    pool taken (one run in 230 hung) and HDF5's objects half made (one in 100 crashed at
    the interpreter's end).
    """
    status, message = SIGNALS[signal.Signals(number)]
    remove_unfinished()
    if sys.stderr.isatty():
        message = SHOW_CURSOR + message
    os.write(2, f"h5fpconv: {message}\n".encode())
    os._exit(status)


def make_parser(commands: Iterable[str] = COMMANDS) -> argparse.ArgumentParser:
    """The parser of all commands, which completions and manuals are made from; or of some,
    as loading the modules of all takes longer than many a command."""
    parser = argparse.ArgumentParser(
        prog="h5fpconv", description="Float datasets of HDF5 files in fewer bits.",
        epilog=status_epilog(), formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", action="version", help="show the versions and exit",
                        version=f"h5fpconv {fpconv.__version__}, HDF5 {h5py.version.hdf5_version}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name in commands:
        importlib.import_module(f"h5fpconv.commands.{COMMANDS[name]}").add_parser(subparsers)
    return parser


def fail(message: object, status: Status) -> int:
    """One line on standard error."""
    print_error(message)
    return int(status)


def main(argv: Sequence[str]) -> int:
    """Runs a command; returns its exit status."""
    chosen = argv[:1] if argv and argv[0] in COMMANDS else COMMANDS
    before = {number: signal.signal(number, end_by_signal) for number in SIGNALS}
    try:
        with printing():  # --help and --version
            arguments = make_parser(chosen).parse_args(argv)
        return int(arguments.run(arguments))
    except ReaderGone as error:
        return int(error.status)
    except CommandError as error:
        return fail(error, error.status)
    except MemoryError:
        return fail("not enough memory", Status.INPUT)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
