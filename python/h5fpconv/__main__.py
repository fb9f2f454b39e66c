"""python3 -m h5fpconv

SPDX-License-Identifier: MIT
"""
import sys

from h5fpconv.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
