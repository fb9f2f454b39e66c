"""The command line: the parser of all commands, and how a command ends.

SPDX-License-Identifier: MIT
"""
import argparse
import importlib
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import NoReturn

import fpconv
import h5py

from h5fpconv.status import CommandError, Status, status_epilog

# The modules of the commands, in the order of --help: one a line.
COMMANDS: tuple[str, ...] = (
    "convert",
    "back",
    "diff",
    "inspect",
    "import_model",
    "export_model",
)


class Terminated(BaseException):
    """SIGTERM, raised so that unfinished output is removed on the way out."""


def raise_terminated(number: int, frame: FrameType | None) -> NoReturn:
    raise Terminated


def make_parser() -> argparse.ArgumentParser:
    """The parser of all commands; also what completions and manuals are made from."""
    parser = argparse.ArgumentParser(
        prog="h5fpconv", description="Float datasets of HDF5 files in fewer bits.",
        epilog=status_epilog(), formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", action="version", help="show the versions and exit",
                        version=f"h5fpconv {fpconv.__version__}, HDF5 {h5py.version.hdf5_version}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name in COMMANDS:
        importlib.import_module(f"h5fpconv.{name}").add_parser(subparsers)
    return parser


def add_command(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str,
                summary: str, examples: Sequence[tuple[str, str]]) -> argparse.ArgumentParser:
    """A command's parser, whose --help ends with examples: (what for, command line)."""
    lines = ["examples:"]
    for purpose, line in examples:
        lines += [f"  {purpose}:", f"    {line}"]
    return subparsers.add_parser(
        name, help=summary[0].lower() + summary[1:].rstrip("."), description=summary,
        epilog="\n".join([*lines, "", status_epilog()]),
        formatter_class=argparse.RawDescriptionHelpFormatter)


def fail(message: object, status: Status) -> int:
    """One line on standard error."""
    print(f"h5fpconv: {message}", file=sys.stderr)
    return int(status)


def main(argv: Sequence[str]) -> int:
    """Runs a command; returns its exit status."""
    arguments = make_parser().parse_args(argv)
    before = signal.signal(signal.SIGTERM, raise_terminated)
    try:
        return int(arguments.run(arguments))
    except CommandError as error:
        return fail(error, error.status)
    except KeyboardInterrupt:
        return fail("interrupted", Status.INTERRUPTED)
    except Terminated:
        return fail("ended by SIGTERM", Status.TERMINATED)
    except MemoryError:
        return fail("not enough memory", Status.INPUT)
    finally:
        signal.signal(signal.SIGTERM, before)
