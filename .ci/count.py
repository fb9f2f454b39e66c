"""count.py DIR: how many checks the Meson test logs below DIR passed, failed and skipped

SPDX-License-Identifier: MIT

A test program that reports its tests one by one (CMocka, TAP, pytest -v) counts as
that many checks, any other as one.  A program that failed without saying which of its
tests did (a crash, a time limit, a sanitizer) counts as one failed check more.
So does a skipped one, since a lane has all that its tests need; but not a test of
an instruction set that this machine's CPU lacks.
"""
import json
import pathlib
import re
import sys

PASSED = re.compile(r"^\[ +OK +\]|^ *ok \d+(?!.*# SKIP)|^\S+\.py::.* PASSED\b", re.MULTILINE)
FAILED = re.compile(r"^\[ +FAILED +\] \w+$|^ *not ok \d+|^\S+\.py::.* (?:FAILED|ERROR)\b",
                    re.MULTILINE)
SKIPPED = re.compile(r"^\[ +SKIPPED +\] \w+$|^ *ok \d+.*# SKIP|^\S+\.py::.* SKIPPED\b",
                     re.MULTILINE)
CPU_LEVEL = re.compile(r" (sse2|avx2|avx512|neon)$")


def count(test):
    """(passed, failed, skipped) of one line of a testlog.json."""
    result = test["result"]
    if result == "SKIP":
        return 0, 0 if CPU_LEVEL.search(test["name"]) else 1, 1
    text = test.get("stdout", "") + "\n" + test.get("stderr", "")
    passed = len(PASSED.findall(text))
    # CMocka names these twice: where they ran, and in its summary
    failed = len(set(FAILED.findall(text)))
    skipped = len(set(SKIPPED.findall(text)))
    if result != "OK":
        failed = max(failed, 1)
    elif passed + failed + skipped == 0:
        passed = 1
    return passed, failed + skipped, skipped


def main(directory):
    totals = [0, 0, 0]
    for log in sorted(pathlib.Path(directory).glob("**/meson-logs/testlog*.json")):
        for line in log.read_text().splitlines():
            totals = [a + b for a, b in zip(totals, count(json.loads(line)))]
    print(*totals)


if __name__ == "__main__":
    main(sys.argv[1])
