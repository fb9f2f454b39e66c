"""python3 -m h5fpconv, and the installed command

SPDX-License-Identifier: MIT
"""
import sys

from h5fpconv import cli


def main() -> int:
    """The command with the arguments of this process; returns its exit status."""
    return cli.main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
