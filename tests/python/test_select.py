"""Patterns, sizes and targets by name.

SPDX-License-Identifier: MIT
"""
import argparse

import fpconv
import pytest
from h5fpconv.select import Selection, matches, parse_size
from h5fpconv.status import UsageError
from h5fpconv.targets import TARGET_NAMES, Storage, find_target


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
