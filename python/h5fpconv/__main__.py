"""python3 -m h5fpconv, and the installed command

SPDX-License-Identifier: MIT
"""
import os
import sys

from h5fpconv import cli
from h5fpconv.status import Status


def main() -> int:
    """The command with the arguments of this process; returns its exit status.

    After a signal it does not return.  The interpreter's end would close h5py's objects
    that a signal caught in the making, and one run in 100 crashed there.
    """
    status = cli.main(sys.argv[1:])
    if status in (Status.INTERRUPTED, Status.TERMINATED):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    return status


if __name__ == "__main__":
    sys.exit(main())
