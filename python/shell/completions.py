"""Writes the completions of h5fpconv for bash, zsh or fish, from its parser.

SPDX-License-Identifier: MIT

    completions.py bash|zsh|fish OUTPUT

Not by shtab: of an option's choices that of Debian 12 completes only the first in bash.
"""
from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from commands import actions_of, all_commands, help_text, takes_file, value_name


def summary(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    """The help's beginning, for one line of a list."""
    text = help_text(parser, action)
    for end in (";", ". ", " (", ":"):
        text = text.split(end)[0]
    return text


def description(parser: argparse.ArgumentParser) -> str:
    return (parser.description or "").splitlines()[0].rstrip(".")


def choices_of(action: argparse.Action) -> str:
    return " ".join(map(str, action.choices or ()))


def options_of(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return [action for action in actions_of(parser) if action.option_strings]


# ---------------------------------------------------------------------------
# bash
# ---------------------------------------------------------------------------

BASH = """\
# bash completion of h5fpconv; made from its parser
_h5fpconv() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} words= files=
    # --option=value comes as three words.
    [[ $before == = ]] && before=${{COMP_WORDS[COMP_CWORD-2]}}
    [[ $word == = ]] && word=
    if ((COMP_CWORD == 1)); then
        words="{commands} {options}"
    else
        case ${{COMP_WORDS[1]}} in
{cases}
        esac
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" ${{files:+-f}} -- "$word")
    [[ -z $files ]] || compopt -o filenames 2>/dev/null
}}
complete -F _h5fpconv h5fpconv
"""


def bash_case(name: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    yield f"        {name})"
    yield "            case $before in"
    for action in options_of(parser):
        if action.nargs != 0:
            given = "files=1" if takes_file(action) else f'words="{choices_of(action)}"'
            yield f"            {' | '.join(action.option_strings)}) {given} ;;"
    options = names_of_options(parser)
    yield f'            *) if [[ $word == -* ]]; then words="{options}"; else files=1; fi ;;'
    yield "            esac ;;"


def names_of_options(parser: argparse.ArgumentParser) -> str:
    return " ".join(option for action in options_of(parser) for option in action.option_strings)


def make_bash() -> str:
    parser, commands = all_commands()
    cases = [line for name, command in commands.items() for line in bash_case(name, command)]
    return BASH.format(commands=" ".join(commands), options=names_of_options(parser),
                       cases="\n".join(cases))


# ---------------------------------------------------------------------------
# zsh
# ---------------------------------------------------------------------------

ZSH = """\
#compdef h5fpconv
# zsh completion of h5fpconv; made from its parser
_h5fpconv() {{
    local curcontext=$curcontext state line
    typeset -A opt_args
    _arguments -C {options} '1:command:->command' '*::argument:->argument'
    case $state in
    command)
        local -a commands=({commands})
        _describe command commands ;;
    argument)
        case $words[1] in
{cases}
        esac ;;
    esac
}}
_h5fpconv "$@"
"""


def zsh_quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def zsh_escaped(text: str) -> str:
    """Text within brackets, or before a colon."""
    for character in "\\[]:":
        text = text.replace(character, "\\" + character)
    return text


def zsh_argument(parser: argparse.ArgumentParser, action: argparse.Action) -> Iterator[str]:
    value = ""
    if action.nargs != 0:
        what = f"({choices_of(action)})" if action.choices else "_files" if takes_file(action) else " "
        value = f":{zsh_escaped(value_name(action) if not action.choices else action.dest)}:{what}"
    if not action.option_strings:
        yield zsh_quoted(("*" if action.nargs in ("*", "+") else "") + value)
    for option in action.option_strings:
        several = "*" if isinstance(action, argparse._AppendAction) else \
            f"({' '.join(action.option_strings)})"
        joined = "=" if value and option.startswith("--") else ""  # --option=value, too
        yield zsh_quoted(f"{several}{option}{joined}[{zsh_escaped(summary(parser, action))}]{value}")


def make_zsh() -> str:
    parser, commands = all_commands()
    options = [word for action in options_of(parser) for word in zsh_argument(parser, action)]
    cases = []
    for name, command in commands.items():
        words = [word for action in actions_of(command) for word in zsh_argument(command, action)]
        cases.append(f"        {name}) _arguments {' '.join(words)} ;;")
    described = (f"{name}:{zsh_escaped(description(c))}" for name, c in commands.items())
    return ZSH.format(options=" ".join(options), commands=" ".join(map(zsh_quoted, described)),
                      cases="\n".join(cases))


# ---------------------------------------------------------------------------
# fish
# ---------------------------------------------------------------------------


def fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def fish_option(condition: str, parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    words = ["complete -c h5fpconv -n", fish_quoted(condition)]
    for option in action.option_strings:
        words.append(f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}")
    if action.choices is not None:
        words.append("-x -a " + fish_quoted(choices_of(action)))
    elif action.nargs != 0:
        words.append("-r -F" if takes_file(action) else "-x")
    return " ".join([*words, "-d", fish_quoted(summary(parser, action))])


def make_fish() -> str:
    parser, commands = all_commands()
    before = "not __fish_seen_subcommand_from " + " ".join(commands)
    lines = ["# fish completion of h5fpconv; made from its parser",
             f"complete -c h5fpconv -n {fish_quoted(before)} -f"]
    lines += [fish_option(before, parser, action) for action in options_of(parser)]
    for name, command in commands.items():
        lines.append(f"complete -c h5fpconv -n {fish_quoted(before)} -a {name} "
                     f"-d {fish_quoted(description(command))}")
        lines += [fish_option(f"__fish_seen_subcommand_from {name}", command, action)
                  for action in options_of(command)]
    return "\n".join(lines) + "\n"


def main(shell: str, output: str) -> None:
    make = {"bash": make_bash, "zsh": make_zsh, "fish": make_fish}[shell]
    with open(output, "w", encoding="utf-8") as file:
        file.write(make())


if __name__ == "__main__":
    main(*sys.argv[1:])
