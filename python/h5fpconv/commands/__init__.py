"""The commands, a module each, with `add_parser(subparsers)` and `run(arguments)`.

SPDX-License-Identifier: MIT
"""
import argparse
from collections.abc import Sequence

from h5fpconv.user.status import status_epilog

# Each command's module, in the order of --help: one a line.
COMMANDS: dict[str, str] = {
    "convert": "convert",
    "back": "back",
    "diff": "diff",
    "inspect": "inspect",
    "import": "import_model",
    "export": "export_model",
}


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
