"""Which datasets a command is about, and what each becomes.

SPDX-License-Identifier: MIT

A pattern is a path in which `*` stands for any characters of one name, `**` for
any number of names, `?` and `[...]` as in a shell.  One that does not begin with
`/` is compared with the end of a path, a name at a time.
"""
import argparse
import dataclasses
import functools
import itertools
import re
from collections.abc import Iterable, Sequence

from h5fpconv.user.status import UsageError
from h5fpconv.user.targets import Target, find_target

KEEP = "keep"  # in a map: leave the datasets as they are


def name_expression(name: str) -> str:
    """The regular expression of one name of a pattern."""
    expression, i = "", 0
    while i < len(name):
        end = name.find("]", i + 2) if name[i] == "[" else -1
        if end > 0:
            inside = name[i + 1:end].replace("\\", "\\\\").replace("[", "\\[")
            expression += "[" + ("^" + inside[1:] if inside[0] == "!" else inside) + "]"
            i = end
        else:
            expression += {"*": "[^/]*", "?": "[^/]"}.get(name[i], re.escape(name[i]))
        i += 1
    return expression


@functools.lru_cache(maxsize=None)
def compile_pattern(pattern: str) -> re.Pattern[str]:
    """A pattern as a regular expression for whole paths."""
    names = pattern.strip("/").split("/")
    expression = "" if pattern.startswith("/") else "(/[^/]+)*"
    expression += "".join("(/[^/]+)*" if n == "**" else "/" + name_expression(n) for n in names)
    try:
        return re.compile(expression, re.DOTALL)
    except re.error as error:
        raise UsageError(f"the pattern {pattern!r} is wrong: {error}") from None


def matches(path: str, patterns: Iterable[str]) -> bool:
    """Whether one of the patterns fits the path, which begins with `/`."""
    return any(compile_pattern(pattern).fullmatch(path) for pattern in patterns)


def literal_path(pattern: str) -> str | None:
    """The one path that a pattern fits; None for one that may fit several."""
    path = re.sub(r"\[([*?\[])\]", r"\1", pattern)
    is_literal = pattern.startswith("/") and not re.search(r"[*?\[]", re.sub(r"\[[*?\[]\]", "", pattern))
    return "/" + path.strip("/") if is_literal else None


def parse_size(text: str) -> int:
    """A number of bytes with an optional unit of 1024: 4096, 64K, 1.5M, 2G."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 4096, 64K or 1.5M")
    return int(float(found[1]) * 1024 ** " KMGT".index(found[2].upper() or " "))


@dataclasses.dataclass(frozen=True)
class Selection:
    """The rules by which datasets are chosen: all of them have to agree.

    `only`, `skip`: patterns; without any `only`, every path is meant.
    `min_bytes`: of the values as they are in the file.
    `map`: the first pattern that fits decides on the target, None meaning to keep
    the dataset; `default` is the target where none fits, None meaning to keep it.
    """

    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    min_bytes: int = 0
    map: tuple[tuple[str, Target | None], ...] = ()
    default: Target | None = None

    def includes(self, paths: Sequence[str], size: int) -> bool:
        """Whether an object with these paths (its hard links) and this size is chosen."""
        return (size >= self.min_bytes and
                (not self.only or any(matches(p, self.only) for p in paths)) and
                not any(matches(p, self.skip) for p in paths))

    def is_named(self, paths: Sequence[str]) -> bool:
        """Whether the user has named the object, and not just all of them."""
        patterns = (*self.only, *(pattern for pattern, _ in self.map))
        return any(matches(p, patterns) for p in paths)

    def unused(self, objects: Iterable[Sequence[str]]) -> list[str]:
        """The patterns that none of the objects, each by its paths, fits."""
        paths = {path for names in objects for path in names}

        def is_used(pattern: str) -> bool:
            literal = literal_path(pattern)
            if literal is not None:
                return literal in paths
            return any(matches(path, (pattern,)) for path in paths)

        patterns = dict.fromkeys((*self.only, *self.skip, *(pattern for pattern, _ in self.map)))
        return [pattern for pattern in patterns if not is_used(pattern)]

    @functools.cached_property
    def rules_by_path(self) -> dict[str, int]:
        """The first rule of the map for each path that is written out: a map that inspect
        made has a line for each of what may be thousands of datasets."""
        found: dict[str, int] = {}
        for i, (pattern, _) in enumerate(self.map):
            path = literal_path(pattern)
            if path is not None:
                found.setdefault(path, i)
        return found

    @functools.cached_property
    def other_rules(self) -> list[int]:
        return [i for i, (pattern, _) in enumerate(self.map) if literal_path(pattern) is None]

    def target(self, paths: Sequence[str], size: int) -> Target | None:
        """What the object becomes; None if it stays as it is."""
        if not self.includes(paths, size):
            return None
        fitting = [self.rules_by_path[p] for p in paths if p in self.rules_by_path]
        fitting += itertools.islice((i for i in self.other_rules
                                     if any(matches(p, (self.map[i][0],)) for p in paths)), 1)
        return self.map[min(fitting)][1] if fitting else self.default


def read_map(path: str, rule: str | None) -> tuple[tuple[str, Target | None], ...]:
    """The lines `PATTERN TARGET` of a file; `#` begins a comment."""
    try:
        with open(path, encoding="utf-8-sig") as file:
            lines = [line.partition("#")[0].strip() for line in file]
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the map {path}: {error}") from None
    rules: list[tuple[str, Target | None]] = []
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        *before, name = line.rsplit(None, 1)
        if not before:
            raise UsageError(f"{path}, line {number}: expected a pattern and a target")
        pattern = before[0]
        try:
            compile_pattern(pattern)
            rules.append((pattern, None if name == KEEP else find_scheme(name, rule)))
        except UsageError as error:
            raise UsageError(f"{path}, line {number}: {error}") from None
    return tuple(rules)


def find_scheme(name: str, rule: str | None) -> Target:
    """As find_target; in a map the rule is for those targets that have a choice."""
    target = find_target(name)
    has_choice = target.scheme is not None and target.scheme.scaling == "mx"
    return find_target(name, rule) if has_choice else target


def add_selection_arguments(parser: argparse.ArgumentParser, *, targets: bool) -> None:
    """--only, --skip and --min-size, and with `targets` also --map."""
    group = parser.add_argument_group(
        "selection", "In a PATTERN, * stands for any characters of one name and ** for any number "
        "of names; one without a leading / is compared with the end of a path.")
    group.add_argument("--only", metavar="PATTERN", action="append", default=[],
                       help="only datasets of this path; may be given more than once")
    group.add_argument("--skip", metavar="PATTERN", action="append", default=[],
                       help="no datasets of this path; may be given more than once")
    group.add_argument("--min-size", metavar="SIZE", type=parse_size, default=0,
                       help="only datasets of at least so many bytes (64K, 1.5M, 2G)")
    if targets:
        group.add_argument("--map", metavar="FILE",
                           help=f"lines of a PATTERN and a target or `{KEEP}'; the first that fits "
                                "a dataset decides, and --to where none does")


def selection_of(arguments: argparse.Namespace) -> Selection:
    """The selection that a command's arguments describe.

    Raises UsageError for a wrong pattern, map or combination.
    """
    for pattern in (*arguments.only, *arguments.skip):
        compile_pattern(pattern)
    rule = getattr(arguments, "scale", None)
    map_path = getattr(arguments, "map", None)
    name = getattr(arguments, "to", None)
    rules = read_map(map_path, rule) if map_path else ()
    default = find_target(name, None if map_path else rule) if name else None
    if default and map_path:
        default = find_scheme(default.name, rule)
    return Selection(tuple(arguments.only), tuple(arguments.skip), arguments.min_size, rules,
                     default)
