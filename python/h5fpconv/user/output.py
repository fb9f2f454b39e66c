"""An output file that appears under its name only when it is complete.

SPDX-License-Identifier: MIT
"""
import contextlib
import os
import secrets
import stat
from collections.abc import Iterator, Sequence

from h5fpconv.user.status import OutputError, UsageError

SUFFIX = ".h5fpconv"

# The temporary files that there are, or are about to be: what a signal removes.
unfinished: set[str] = set()


def check_distinct(inputs: Sequence[str], output: str) -> None:
    """UsageError if the output is one of the inputs, by whatever name."""
    for path in inputs:
        with contextlib.suppress(OSError):
            if os.path.samefile(path, output):
                raise UsageError(f"{output} is the input; the output has to be another file")


def temporary_path(path: str) -> str:
    """A name in the same folder that nothing has, known before there is anything to remove."""
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name[:50]}.{secrets.token_hex(8)}{SUFFIX}")


@contextlib.contextmanager
def temporary_file(path: str) -> Iterator[str]:
    """The name of a file beside `path` for the block to make; at its end there is none.

    It is known before the file is there: a signal may come at once.
    """
    temporary = temporary_path(path)
    unfinished.add(temporary)
    try:
        yield temporary
    finally:
        remove(temporary)
        unfinished.discard(temporary)


def remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)


def remove_unfinished() -> None:
    """What has to be done before the process ends in the middle of a block of this module."""
    for path in list(unfinished):
        remove(path)


@contextlib.contextmanager
def complete_file(path: str) -> Iterator[str]:
    """The name of a temporary file, which becomes `path` at the end of the block.

    It lies in the same folder, so that the last step is one rename, after all of
    it has reached the disk.  Whatever ends the block early removes it; a file that was
    there before stays as it was.
    """
    path = os.path.realpath(path)
    if os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode):
        raise OutputError(f"{path} is not a regular file")
    with temporary_file(path) as temporary:
        create(temporary, file_mode(path))
        yield temporary
        try:
            sync(temporary)
            os.replace(temporary, path)
            sync(os.path.dirname(path))
        except OSError as error:
            raise OutputError(f"cannot write {path}: {error.strerror}") from None


def create(path: str, mode: int) -> None:
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise OutputError(f"cannot write in {os.path.dirname(path)}: {error.strerror}") from None
    try:
        os.fchmod(fd, mode)
    finally:
        os.close(fd)


def file_mode(path: str) -> int:
    """The permissions of the file that is replaced, or those of a new one."""
    try:
        return stat.S_IMODE(os.stat(path).st_mode)
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def reason(error: Exception) -> str:
    """Why the system or HDF5 failed, in one line: HDF5 adds a dump of its arguments."""
    number = getattr(error, "errno", None)
    return os.strerror(number) if number else str(error).splitlines()[0]


def sync(path: str) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
