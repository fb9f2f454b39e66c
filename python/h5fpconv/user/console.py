"""What the user sees: tables, messages, JSON, and a progress bar on a terminal.

SPDX-License-Identifier: MIT

Results go to standard output, all else to standard error.  rich is loaded only
when something is drawn, since loading it takes longer than many a command.
"""
import argparse
import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from h5fpconv.user.status import OutputError, ReaderGone

Advance = Callable[[int], None]

SHOW_CURSOR = "\r\x1b[K\x1b[?25h"  # what a progress bar hides, on a line of its own
FOLDED = 16  # characters: names in columns narrower than this are hard to read


def add_output_arguments(parser: argparse.ArgumentParser) -> None:
    """--quiet and --json, the same for every command."""
    group = parser.add_argument_group("output")
    group.add_argument("--json", action="store_true",
                       help="print the result as JSON and nothing else")
    group.add_argument("--quiet", "-q", action="store_true",
                       help="print nothing but errors (and what --json asks for)")


def format_bytes(count: float) -> str:
    """A number of bytes in at most four digits and a binary unit."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


PLAIN = str.maketrans("▁▂▃▄▅▆▇█━╌…×", ".:-=+*##=-~x")  # for an output without these


def readable(text: str, encoding: str) -> str:
    """The text in characters that an encoding has, and with none that a terminal obeys.

    Names in a file may hold anything: control characters become escapes, as do bytes that
    are not UTF-8 and what the encoding lacks.
    """
    shown = "".join(c if c.isprintable() or c == "\n" else escape(c) for c in text)
    try:
        shown.encode(encoding)
    except UnicodeEncodeError:
        shown = shown.translate(PLAIN).encode(encoding, "backslashreplace").decode(encoding)
    return shown


def escape(character: str) -> str:
    if "\udc80" <= character <= "\udcff":  # a byte that is not UTF-8
        return f"\\x{ord(character) - 0xdc00:02x}"
    return character.encode("unicode_escape").decode()


def output_encoding() -> str:
    return getattr(sys.stdout, "encoding", None) or "utf-8"


def print_error(message: object) -> None:
    """One line on standard error."""
    print(f"h5fpconv: {readable(str(message), 'utf-8')}", file=sys.stderr)


@contextlib.contextmanager
def printing() -> Iterator[None]:
    """For what prints a result: OutputError where it cannot be written, ReaderGone where
    nobody reads it any more, as in `h5fpconv ... | head`."""
    try:
        try:
            yield
        finally:
            if sys.stdout:
                sys.stdout.flush()
    except OSError as error:
        # What is left of it would fail once more at the interpreter's end.
        with open(os.devnull, "w", encoding="utf-8") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise ReaderGone from None
        raise OutputError(f"cannot print the result: {error.strerror}") from None


class Console:
    """One command's output, as its --quiet and --json ask for."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.quiet: bool = getattr(arguments, "quiet", False)
        self.json: bool = getattr(arguments, "json", False)

    def warn(self, message: str) -> None:
        """A line to standard error, unless --quiet."""
        if not self.quiet:
            print_error(message)

    def warn_of_unused(self, patterns: Sequence[str], path: str) -> None:
        """Names the patterns that fit nothing in a file, which may be misspelt."""
        for pattern in patterns:
            self.warn(f"no such dataset of {path} fits the pattern {pattern!r}")

    def say(self, message: str) -> None:
        """A line of the result for people: not with --quiet or --json."""
        if not self.quiet and not self.json:
            with printing():
                print(readable(message, output_encoding()))

    def print_json(self, value: Any) -> None:
        """The result for programs.  Inf and NaN, which JSON lacks, become null."""
        if self.json:
            with printing():
                print(json.dumps(finite_only(value), indent=2, allow_nan=False))

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]], *,
              left: Sequence[int] = (0,), title: str | None = None) -> None:
        """A table for people; the columns `left` are aligned to the left."""
        if self.quiet or self.json:
            return
        from rich import box
        from rich.console import Console as RichConsole
        from rich.table import Table
        from rich.text import Text

        class Terminal(RichConsole):
            def on_broken_pipe(self) -> None:
                """As before rich 13.8, which would exit here: `printing` knows what to do."""
                raise BrokenPipeError

        rows = [[readable(cell, output_encoding()).replace("\n", "\\n") for cell in row]
                for row in rows]
        table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left")
        for i, column in enumerate(columns):
            table.add_column(column, justify="left" if i in left else "right",
                             overflow="fold", no_wrap=i not in left)
        for row in rows:
            table.add_row(*map(Text, row))
        terminal = Terminal(highlight=False)
        if not terminal.is_terminal:  # a file or a pipe has no width to fit into
            terminal = Terminal(highlight=False, width=1000)
        elif terminal.width < (least := least_width(columns, rows, left)):
            # rich would leave whole columns out; lines that the terminal breaks lose nothing
            terminal = Terminal(highlight=False, width=least)
        with printing():
            terminal.print(table)

    @contextlib.contextmanager
    def progress(self, total: int, what: str) -> Iterator[Advance]:
        """A bar with bytes and time left, on a terminal only.

        Yields a function that takes the number of bytes done since its last call;
        any thread may call it.
        """
        if self.quiet or not sys.stderr.isatty():
            yield lambda count: None
            return
        from rich.console import Console as Terminal
        from rich.progress import (BarColumn, DownloadColumn, Progress, TextColumn,
                                   TimeRemainingColumn, TransferSpeedColumn)
        with Progress(TextColumn("{task.description}", markup=False), BarColumn(),
                      DownloadColumn(binary_units=True), TransferSpeedColumn(),
                      TimeRemainingColumn(), console=Terminal(stderr=True),
                      transient=True) as bar:
            task = bar.add_task(readable(what, output_encoding()), total=total)
            yield lambda count: bar.advance(task, count)


def least_width(columns: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int]) -> int:
    """The width of a table whose left columns are folded to FOLDED characters."""
    widest = [max(map(len, cells)) for cells in zip(columns, *rows)]
    return 1 + sum(3 + (min(width, FOLDED) if i in left else width)
                   for i, width in enumerate(widest))


def finite_only(value: Any) -> Any:
    """The value with None for each float that is not finite."""
    if isinstance(value, dict):
        return {key: finite_only(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite_only(item) for item in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), -float("inf"))):
        return None
    return value
