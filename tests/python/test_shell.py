"""Manual pages by mandoc and man, completions by bash, zsh and fish themselves.

SPDX-License-Identifier: MIT
"""
import argparse
import functools
import os
import pathlib
import pty
import re
import select
import shlex
import subprocess
import time

import pytest

import h5fpconv
from h5fpconv.cli import make_parser
from h5fpconv.user.status import Status

BUILD = pathlib.Path(h5fpconv.__file__).parents[2]
MADE = BUILD / "python" / "shell"
MANUALS = pathlib.Path(__file__).parents[2] / "docs" / "man"
PAGES = [MADE / "h5fpconv.1", MANUALS / "fpconv-doctor.1", MANUALS / "fpconv-bench.1"]
PROGRAMS = [path for path in (BUILD / "tools" / "fpconv-doctor", BUILD / "bench" / "fpconv-bench")
            if path.exists()]


@functools.cache
def parsers() -> dict[str, argparse.ArgumentParser]:
    [action] = [a for a in make_parser()._actions if isinstance(a, argparse._SubParsersAction)]
    return dict(action.choices)


COMMANDS = list(parsers())


def options_of(command: str) -> set[str]:
    """The options of a command, as argparse's own help shows them."""
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", parsers()[command].format_usage()))


def value_options() -> list[tuple[str, str, list[str]]]:
    """Command, option and values, where an option has a choice of values."""
    return [(command, action.option_strings[0], [str(choice) for choice in action.choices])
            for command in COMMANDS for action in parsers()[command]._actions
            if action.option_strings and action.choices]


# ---------------------------------------------------------------------------
# Manual pages
# ---------------------------------------------------------------------------


@functools.cache
def rendered(page: pathlib.Path) -> str:
    """The page as text; fails if man has anything to warn of."""
    done = subprocess.run(["man", "--warnings", "-l", page], capture_output=True, text=True,
                          env={**os.environ, "MANWIDTH": "200", "LC_ALL": "C.UTF-8",
                               "MAN_KEEP_FORMATTING": "", "MANPAGER": "cat"})
    assert done.returncode == 0 and done.stderr == ""
    return done.stdout.replace("\N{HYPHEN}", "-").replace("\N{MINUS SIGN}", "-")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_manual_is_right(page: pathlib.Path) -> None:
    lint = subprocess.run(["mandoc", "-Tlint", "-Wwarning", page], capture_output=True, text=True)
    assert (lint.returncode, lint.stdout) == (0, "")
    assert "SEE ALSO" in rendered(page)


def test_manual_has_the_options_without_a_command() -> None:
    text = rendered(PAGES[0]).partition("\nOPTIONS\n")[2].partition("\nCOMMANDS\n")[0]
    assert re.findall(r"^ {5,7}(-\S.*?)(?:  |$)", text, re.MULTILINE) == ["-h, --help", "--version"]


def section(command: str) -> str:
    _, _, rest = rendered(PAGES[0]).partition(f"\n   h5fpconv {command}\n")
    assert rest, command
    return re.split(r"\n   h5fpconv |\n[A-Z]", rest)[0]


@pytest.mark.parametrize("command", COMMANDS)
def test_manual_has_every_option(command: str) -> None:
    described = re.findall(r"^ {5,7}(-\S.*)$", section(command), re.MULTILINE)
    found = {option for line in described for option in re.findall(r"--[a-z][a-z-]*", line)}
    assert found >= options_of(command)
    examples = section(command).partition("examples:")[2]
    assert f"h5fpconv {command} " in examples


def test_manual_has_every_status() -> None:
    text = rendered(PAGES[0]).partition("EXIT STATUS")[2]
    assert re.findall(r"^ {5,7}(\d+) ", text, re.MULTILINE) == [str(int(s)) for s in Status]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.name)
def test_manual_of_the_programs_in_c(program: pathlib.Path) -> None:
    usage = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    listed = re.split(r"\nExit status|\nMandatory", usage)[0]
    options = set(re.findall(r"^ +(?:-\S, )?(--[a-z]+)", listed, re.MULTILINE))
    [page] = [page for page in PAGES if page.stem == program.name]
    described = re.findall(r"^ {5,8}(-\S.*)$", rendered(page), re.MULTILINE)
    assert {o for line in described for o in re.findall(r"--[a-z]+", line)} == options
    assert "--help" in options and len(options) >= 3


# ---------------------------------------------------------------------------
# Completions
# ---------------------------------------------------------------------------


def complete_in_bash(line: str, folder: pathlib.Path) -> set[str]:
    """Calls the completion as bash's readline does, with `=` a word of its own."""
    words = re.findall(r"=|[^\s=]+", line) + ([""] if line.endswith(" ") else [])
    script = (f"source {MADE / 'h5fpconv'}; complete -p h5fpconv >/dev/null || exit 9; "
              f"COMP_WORDS=({shlex.join(words)}); COMP_CWORD={len(words) - 1}; "
              "_h5fpconv; printf '%s\\n' \"${COMPREPLY[@]}\"")
    done = subprocess.run(["bash", "--norc", "-c", script], capture_output=True, text=True,
                          cwd=folder, check=True)
    assert done.stderr == ""
    return set(done.stdout.split())


def complete_in_fish(line: str, folder: pathlib.Path) -> set[str]:
    script = f"source {MADE / 'h5fpconv.fish'}; complete -C {shlex.quote(line)}"
    done = subprocess.run(["fish", "--no-config", "-c", script], capture_output=True, text=True,
                          cwd=folder, check=True)
    assert done.stderr == ""
    return {entry.split("\t")[0] for entry in done.stdout.splitlines()}


class Terminal:
    """A program at a terminal of 200 columns."""

    def __init__(self, arguments: list[str], folder: pathlib.Path) -> None:
        self.unread = ""
        self.process, self.fd = pty.fork()
        if self.process == 0:
            os.chdir(folder)
            os.environ.update(TERM="dumb", PS1="", HOME=str(folder))
            os.execvp(arguments[0], arguments)

    def send(self, text: str) -> None:
        os.write(self.fd, text.encode())

    def read_until(self, wanted: str) -> str:
        end = time.monotonic() + 20
        while wanted not in self.unread:
            assert time.monotonic() < end, self.unread
            if select.select([self.fd], [], [], 0.1)[0]:
                self.unread += os.read(self.fd, 65536).decode(errors="replace")
        text, _, self.unread = self.unread.partition(wanted)
        return text

    def close(self) -> None:
        os.close(self.fd)
        os.waitpid(self.process, 0)


def complete_in_zsh(line: str, folder: pathlib.Path) -> set[str]:
    """zsh lists completions only at a terminal."""
    zsh = Terminal(["zsh", "-f", "-i"], folder)
    zsh.send(f"fpath=({MADE} $fpath); autoload -U compinit; compinit -u -D; LISTMAX=0; "
             "bindkey '^Xl' list-choices; stty rows 1000 cols 200; echo rea''dy\n")
    zsh.read_until("ready")
    zsh.read_until("[?2004h")  # its line editor is there
    zsh.send(line + "\x18l\x15echo list''-end\n")
    shown = zsh.read_until("list-end")
    zsh.close()
    listed = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown).splitlines()[1:-2]
    described = [entry.split(" -- ")[0].split() for entry in listed if " -- " in entry]
    return {word for words in described or map(str.split, listed) for word in words} - {
        "echo", "list''-end", *line.split()}


SHELLS = {"bash": complete_in_bash, "zsh": complete_in_zsh, "fish": complete_in_fish}


@pytest.mark.parametrize("shell", SHELLS)
def test_commands_are_completed(shell: str, tmp_path: pathlib.Path) -> None:
    options = {"-h", "--help", "--version"}
    assert SHELLS[shell]("h5fpconv ", tmp_path) - options == set(COMMANDS)
    assert SHELLS[shell]("h5fpconv -", tmp_path) == options


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("shell", SHELLS)
def test_options_are_completed(shell: str, command: str, tmp_path: pathlib.Path) -> None:
    found = SHELLS[shell](f"h5fpconv {command} --", tmp_path)
    # bash has no list of its own for an option's two names.
    assert {option for option in found if option.startswith("--")} >= options_of(command)
    assert found <= {o for a in parsers()[command]._actions for o in a.option_strings}


@pytest.mark.parametrize("command, option, values", value_options(),
                         ids=[f"{command}{option}" for command, option, _ in value_options()])
@pytest.mark.parametrize("shell", SHELLS)
def test_values_are_completed(shell: str, command: str, option: str, values: list[str],
                              tmp_path: pathlib.Path) -> None:
    assert SHELLS[shell](f"h5fpconv {command} {option} ", tmp_path) == set(values)


@pytest.mark.parametrize("shell", SHELLS)
def test_value_after_an_equals_sign(shell: str, tmp_path: pathlib.Path) -> None:
    found = SHELLS[shell]("h5fpconv convert --policy=", tmp_path)
    assert {value.removeprefix("--policy=") for value in found} == {"hdf5", "ocp", "ocp_sat"}


@pytest.mark.parametrize("line", ["h5fpconv convert mo", "h5fpconv convert --map mo"])
@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_files_are_completed(shell: str, line: str, tmp_path: pathlib.Path) -> None:
    for name in ("model.h5", "model.txt", "other"):
        (tmp_path / name).touch()
    assert SHELLS[shell](line, tmp_path) == {"model.h5", "model.txt"}
