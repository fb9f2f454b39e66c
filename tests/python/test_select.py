"""Patterns, sizes and targets by name.

SPDX-License-Identifier: MIT
"""
import argparse
import itertools
import time

import fpconv
import pytest
from h5fpconv.user.select import Selection, literal_path, matches, parse_size, read_map
from h5fpconv.user.status import UsageError
from h5fpconv.user.targets import TARGET_NAMES, Storage, find_target


@pytest.mark.parametrize("pattern, path, fits", [
    ("/a/b", "/a/b", True), ("/a/b", "/a/b/c", False), ("/a/*", "/a/b", True), ("/a/*", "/a/b/c", False),
    ("/a/**", "/a/b/c", True), ("/a/**/w", "/a/w", True), ("/a/**/w", "/a/b/c/w", True),
    ("/**/w", "/w", True), ("w", "/a/b/w", True), ("w", "/a/b/ww", False), ("b/w", "/a/b/w", True),
    ("b/w", "/a/xb/w", False), ("*.weight", "/a/l.0.weight", True), ("?", "/a/b", True),
    ("[ab]", "/x/a", True), ("[!ab]", "/x/a", False), ("[!ab]", "/x/c", True), ("a.b", "/axb", False),
    ("/a", "/a\nb", False), ("[", "/x/[", True), ("*", "/a\nb", True), ("(x)", "/(x)", True),
])
def test_patterns(pattern, path, fits):
    assert matches(path, [pattern]) is fits


def test_a_wrong_pattern():
    with pytest.raises(UsageError, match="z-a"):
        matches("/x", ["[z-a]"])


@pytest.mark.parametrize("text, size", [("0", 0), ("4096", 4096), ("64K", 65536), ("1.5M", 3 << 19),
                                        ("2GiB", 2 << 30), ("1kb", 1024), ("3 T", 3 << 40)])
def test_sizes(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "K", "-1", "1X", "1e3"])
def test_wrong_sizes(text):
    with pytest.raises(argparse.ArgumentTypeError):
        parse_size(text)


def test_selection():
    bf16, f16 = find_target("bf16"), find_target("f16")
    chosen = Selection(only=("w*",), skip=("/skip/**",), min_bytes=100,
                       map=(("w1", f16), ("w2", None)), default=bf16)
    assert chosen.target(["/a/w1"], 100) is f16 and chosen.target(["/a/w3"], 100) is bf16
    assert chosen.target(["/a/w2"], 100) is None and chosen.target(["/a/w3"], 99) is None
    assert chosen.target(["/skip/w3"], 100) is None and chosen.target(["/a/x"], 100) is None
    assert chosen.target(["/a/x", "/b/w3"], 100) is bf16  # two names of one dataset
    assert chosen.is_named(["/a/w3"]) and not Selection(default=bf16).is_named(["/a/w3"])


def test_targets():
    assert set(TARGET_NAMES) == {*fpconv.FORMATS, *fpconv.SCHEMES, "e3m2_packed", "e2m3_packed", "e2m1_packed"}
    for name in TARGET_NAMES:
        target = find_target(name)
        assert target.name == name and target.format in fpconv.FORMATS
        assert (target.scheme is not None) is (target.storage is Storage.SCALED)
    assert find_target("mxfp4", "ceil").scheme.rule == "ceil"
    for name, rule in (("mxfp4", "amax"), ("nvfp4", "floor"), ("bf16", "ceil"), ("none", None)):
        with pytest.raises(UsageError):
            find_target(name, rule)


@pytest.mark.parametrize("pattern, path", [
    ("/a/b", "/a/b"), ("/a[*]/[?][[]", "/a*/?["), ("/a/", "/a"), ("a/b", None), ("/a/*", None),
    ("/a?", None), ("/[ab]", None), ("/**", None), ("/a[", None)])
def test_literal_paths(pattern, path):
    assert literal_path(pattern) == path
    assert path is None or matches(path, [pattern])


def test_first_rule_decides():
    """Whether it is written out or not."""
    bf16, f16 = find_target("bf16"), find_target("f16")
    for rules in itertools.permutations((("/a", bf16), ("/*", f16), ("/a", None), ("?", None))):
        assert Selection(map=rules).target(["/x/b", "/a"], 0) is rules[0][1] or rules[0][0] == "?"
        assert Selection(map=rules).target(["/b"], 0) is dict(rules)[
            next(p for p, _ in rules if p in ("/*", "?"))]


def test_unused():
    chosen = Selection(only=("w", "/a/x"), skip=("/no/**",), map=(("/a/w", None), ("/b[*]", None)))
    assert chosen.unused([["/a/w", "/c"], ["/b*"]]) == ["/a/x", "/no/**"]


def test_lines_of_a_map(tmp_path):
    """A mark of byte order, tabs and ends of lines as other systems write them."""
    path = tmp_path / "map"
    path.write_bytes(b"\xef\xbb\xbf/a b\tbf16\r\n/c  keep # why\r\n")
    assert read_map(str(path), None) == (("/a b", find_target("bf16")), ("/c", None))


def test_large_map_takes_linear_time():
    """A line for each of 20,000 datasets: 400 million comparisons would take minutes."""
    names = [f"/g/d{i}" for i in range(20_000)]
    chosen = Selection(map=tuple((name, None) for name in names), default=find_target("bf16"))
    begin = time.process_time()
    assert not any(chosen.target([name], 0) for name in names) and not chosen.unused([names])
    assert time.process_time() - begin < 5
