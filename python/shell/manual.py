"""Writes the manual page h5fpconv(1) from the parser of its commands.

SPDX-License-Identifier: MIT

    manual.py VERSION OUTPUT

The page has what --help has, command by command, so that no option is missing; the
text around it is here.
"""
from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from commands import actions_of, all_commands, help_text, value_name
from h5fpconv.user.status import STATUS_TEXT

DATE = "2026-11-30"

DESCRIPTION = """\
stores the float datasets of HDF5 files in formats of fewer bits, packed or scaled
where asked for, and carries everything else over as it is; decodes them again;
compares; says beforehand what each format would keep; and reads and writes
safetensors files.
.PP
Every value is the nearest one of its format, by the library fpconv. Output is
written under a temporary name in the folder of the output and renamed when it is
complete, so that no failure leaves half a file or touches an old one."""

SEE_ALSO = ".BR fpconv-doctor (1),\n.BR h5dump (1),\n.BR h5diff (1),\n.BR h5repack (1)"


def escaped(text: str) -> str:
    """Text as roff takes it for that text, with minus signs that can be copied."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    return "\n".join("\\&" + line if line.startswith(".") else line for line in text.split("\n"))


def synopsis(parser: argparse.ArgumentParser) -> Iterator[str]:
    yield f".B {escaped(parser.prog)}"
    if any(action.option_strings for action in actions_of(parser)):
        yield ".RI [ options ]"
    for action in actions_of(parser):
        if not action.option_strings:
            name = escaped(value_name(action))
            yield {"*": f".RI [ {name} ]...", "+": f".IR {name} ...",
                   "?": f".RI [ {name} ]"}.get(str(action.nargs), f".I {name}")


def argument(parser: argparse.ArgumentParser, action: argparse.Action) -> Iterator[str]:
    value = escaped(value_name(action))
    yield ".TP"
    if not action.option_strings:
        yield f".I {value}"
    else:
        options = ", ".join(f"\\fB{escaped(option)}\\fR" for option in action.option_strings)
        yield options + (f" \\fI{value}\\fR" if value else "")
    yield escaped(help_text(parser, action)) or "\\&"


def command(parser: argparse.ArgumentParser) -> Iterator[str]:
    yield f".SS {escaped(parser.prog)}"
    yield from synopsis(parser)
    yield ".PP"
    yield escaped(parser.description or "")
    for group in parser._action_groups:
        shown = [a for a in group._group_actions if a.help != argparse.SUPPRESS]
        if group.description and shown:
            yield ".PP"
            yield escaped(group.description)
        for action in shown:
            yield from argument(parser, action)
    # The statuses have a section of their own.
    examples = (parser.epilog or "").split("exit status:")[0].strip()
    if examples:
        yield from (".PP", ".nf", escaped(examples), ".fi")


def page(version: str) -> Iterator[str]:
    parser, commands = all_commands()
    yield f'.TH H5FPCONV 1 {DATE} "fpconv {version}" "User Commands"'
    yield ".SH NAME"
    summary = (parser.description or "").rstrip(".")
    yield f"h5fpconv \\- {escaped(summary[0].lower() + summary[1:])}"
    yield ".SH SYNOPSIS"
    for number, name in enumerate(commands):
        if number:
            yield ".br"
        yield from synopsis(commands[name])
    yield ".SH DESCRIPTION"
    yield ".B h5fpconv"
    yield DESCRIPTION
    yield ".SH OPTIONS"
    for action in actions_of(parser):
        if action.option_strings:
            yield from argument(parser, action)
    yield ".SH COMMANDS"
    for name in commands:
        yield from command(commands[name])
    yield ".SH EXIT STATUS"
    for status, text in STATUS_TEXT.items():
        yield from (".TP", f".B {status.value}", escaped(text))
    yield from (".SH SEE ALSO", SEE_ALSO)


def main(version: str, output: str) -> None:
    with open(output, "w", encoding="utf-8") as file:
        file.write("\n".join(page(version)) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
