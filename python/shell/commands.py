"""The commands of h5fpconv as its parser has them, for manual and completions.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import argparse
import re
from collections.abc import Iterator

from h5fpconv.cli import make_parser


def all_commands() -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    """The parser, and those of its commands by name, in the order of --help."""
    parser = make_parser()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return parser, dict(action.choices)
    raise ValueError("the parser has no commands")


def help_text(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    """An argument's help, with what argparse fills in."""
    values = {**vars(action), "prog": parser.prog}
    if action.choices is not None:
        values["choices"] = ", ".join(map(str, action.choices))
    return (action.help or "") % values


def value_name(action: argparse.Action) -> str:
    """What stands for an argument's value in a usage line; empty for a flag."""
    if action.nargs == 0:
        return ""
    if isinstance(action.metavar, str):
        return action.metavar
    if action.choices is not None:
        return "{" + ",".join(map(str, action.choices)) + "}"
    return action.dest.upper() if action.option_strings else action.dest


def takes_file(action: argparse.Action) -> bool:
    """Whether an argument's value is the name of a file: FILE, OUT.h5, REPORT.html."""
    if action.nargs == 0 or action.choices is not None:
        return False
    return not action.option_strings or bool(re.search(r"FILE|\.", value_name(action)))


def actions_of(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """A command's arguments that its help shows, positional ones first."""
    shown = [a for a in parser._actions if a.help != argparse.SUPPRESS]
    yield from (a for a in shown if not a.option_strings)
    yield from (a for a in shown if a.option_strings)
