"""h5fpconv convert that fails, is interrupted or killed; and how much memory it takes.

SPDX-License-Identifier: MIT
"""
import hashlib
import os
import pathlib
import pty
import random
import shutil
import signal
import subprocess
import sys
import time

import h5py
import numpy
import pytest
from command import PROGRAM, errors, run, tool

MIB = 1 << 20


@pytest.fixture(scope="module")
def original(tmp_path_factory) -> pathlib.Path:
    """24 MiB, large enough to be met in the middle of it."""
    path = tmp_path_factory.mktemp("original") / "in.h5"
    values = numpy.random.default_rng(3).standard_normal((256, 1024)).astype("f4")
    with h5py.File(path, "w") as file:
        for i in range(16):
            file[f"contiguous{i}"] = values
        file.create_dataset("gzip", data=numpy.tile(values, (8, 1)), chunks=(64, 256), compression="gzip")
    return path


@pytest.fixture
def source(original, tmp_path) -> pathlib.Path:
    """A copy of it in a folder of its own."""
    folder = tmp_path / "source"
    folder.mkdir()
    return pathlib.Path(shutil.copy(original, folder))


def digest(path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def convert(source, output, *options) -> subprocess.Popen:
    return subprocess.Popen([*PROGRAM, "convert", source, output, "--to", "bf16", *options],
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def is_complete(path) -> bool:
    with h5py.File(path) as file:
        return len(file) == 17 and (file["gzip"][-1] != 0).all() and (file["contiguous15"][-1] != 0).all()


def test_killed_at_any_time(source, tmp_path):
    """SIGKILL, 50 times: the input is as it was, and there is no half file."""
    before, output = digest(source), tmp_path / "out" / "out.h5"
    chance = random.Random(1)
    output.parent.mkdir()
    start = time.monotonic()
    convert(source, output).wait()
    length = time.monotonic() - start
    output.unlink()
    killed = in_the_middle = 0
    for _ in range(50):
        process = convert(source, output)
        time.sleep(chance.uniform(0.2, 1.1) * length)
        in_the_middle += any(output.parent.iterdir()) and not output.exists()
        process.kill()
        killed += process.wait() == -signal.SIGKILL
        if output.exists():
            assert is_complete(output)
            output.unlink()
        assert digest(source) == before
        for rest in output.parent.iterdir():
            assert rest.name.startswith(".out.h5."), rest
            rest.unlink()
    assert killed > 10 and in_the_middle > 3, (killed, in_the_middle)


@pytest.mark.parametrize("number, status", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_leave_nothing(source, tmp_path, number, status):
    """At 10 moments of the work: it ends at once, an old file stays, the temporary one goes."""
    output, chance = tmp_path / "out" / "out.h5", random.Random(4)
    output.parent.mkdir()
    output.write_text("an old file")
    ended = 0
    for _ in range(10):
        process = convert(source, output)
        while process.poll() is None and len(os.listdir(output.parent)) < 2:
            time.sleep(0.001)
        time.sleep(chance.uniform(0, 0.1))
        process.send_signal(number)
        message = process.communicate(timeout=60)[1]
        assert os.listdir(output.parent) == ["out.h5"]
        if process.returncode == 0:  # it was faster
            output.write_text("an old file")
            continue
        ended += 1
        assert process.returncode == status, message
        assert message.count("\n") == 1 and message.startswith("h5fpconv: ")
        assert output.read_text() == "an old file" or is_complete(output)
    assert ended > 3, ended


def test_full_disk(source, tmp_path):
    """A file system of 2 MiB, where this process may mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", disk], check=False,
                      capture_output=True).returncode:
        pytest.skip("no right to mount a file system")
    try:
        (disk / "out.h5").write_text("an old file")
        for target in ("bf16", "mxfp8_e4m3", "e2m1_packed"):
            message = errors("convert", source, disk / "out.h5", "--to", target, status=4)
            assert "No space left" in message and "out.h5" in message, message
            assert os.listdir(disk) == ["out.h5"]
            assert (disk / "out.h5").read_text() == "an old file"
    finally:
        subprocess.run(["umount", disk], check=True)


def test_wrong_inputs(source, tmp_path):
    output = tmp_path / "out.h5"
    bad = tmp_path / "bad"
    assert "missing" in errors("convert", tmp_path / "missing", output, "--to", "bf16", status=3)
    bad.write_text("not an HDF5 file" * 100)
    assert "bad" in errors("convert", bad, output, "--to", "bf16", status=3)
    size = source.stat().st_size
    for part in (100, size // 100, size // 2, size - MIB):  # cut off
        shutil.copy(source, bad)
        os.truncate(bad, part)
        errors("convert", bad, output, "--to", "bf16", status=3)
    assert not output.exists()


def test_damaged_inputs(source, tmp_path):
    """Noise over the middle of the file: an error or a complete file, no trace, no rest."""
    output, bad, chance = tmp_path / "out.h5", tmp_path / "bad", random.Random(2)
    data = source.read_bytes()
    for _ in range(12):
        damaged = bytearray(data)
        for _ in range(20):
            at = chance.randrange(96, 6000) if chance.random() < 0.7 else chance.randrange(len(data))
            damaged[at:at + 16] = chance.randbytes(16)
        bad.write_bytes(damaged)
        done = subprocess.run([*PROGRAM, "convert", bad, output, "--to", "bf16", "-q"],
                              capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode in (0, 3, 4) and "Traceback" not in done.stderr, done.stderr
        assert output.exists() == (done.returncode == 0)
        output.unlink(missing_ok=True)
        assert sorted(os.listdir(tmp_path)) == ["bad", "source"]


def test_wrong_outputs(source, tmp_path):
    before = digest(source)
    link, hard = tmp_path / "link.h5", tmp_path / "hard.h5"
    link.symlink_to(source)
    hard.hardlink_to(source)
    for output in (source, link, hard):
        assert "is the input" in errors("convert", source, output, "--to", "bf16", status=2)
    errors("convert", source, tmp_path / "no" / "folder" / "out.h5", "--to", "bf16", status=4)
    errors("convert", source, tmp_path, "--to", "bf16", status=4)
    errors("convert", source, "/dev/null", "--to", "bf16", status=4)
    assert digest(source) == before


def test_wrong_options(source, tmp_path):
    output = tmp_path / "out.h5"
    for options in (["--to", "e9m9"], [], ["--to", "nvfp4", "--scale", "ceil"], ["--to", "bf16", "--gzip", "0"],
                    ["--to", "bf16", "--min-size", "many"], ["--to", "bf16", "--policy", "x"],
                    ["--to", "bf16", "--only", "[z-a]"], ["--map", tmp_path / "none"]):
        assert "h5fpconv" in errors("convert", source, output, *options, status=2)
    assert not output.exists()


def test_permissions_and_links_of_the_output(source, tmp_path):
    """A file that is replaced keeps its permissions; a link to it stays a link."""
    real, link = tmp_path / "real.h5", tmp_path / "link.h5"
    real.write_text("old")
    real.chmod(0o640)
    link.symlink_to(real)
    run("convert", source, link, "--to", "bf16", "-q")
    assert link.is_symlink() and is_complete(real) and real.stat().st_mode & 0o777 == 0o640
    before = os.umask(0o027)
    try:
        run("convert", source, tmp_path / "new.h5", "--to", "bf16", "-q")
    finally:
        os.umask(before)
    assert (tmp_path / "new.h5").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("target, options", [
    ("e4m3", ()), ("bf16", ("--gzip", "1")), ("mxfp4", ("--chunks", "256K")), ("tensor_e4m3", ())])
def test_memory_is_bounded(tmp_path, target, options):
    """A dataset of 768 MiB, most of it a hole, in less than 200 MiB."""
    source, output = tmp_path / "in.h5", tmp_path / "out.h5"
    with h5py.File(source, "w") as file:
        data = file.create_dataset("w", (192, 1 << 20), "f4")
        data[-1, -5:] = 1
        file.create_dataset("chunks", (192, 1 << 20), "f4", chunks=(16, 1 << 14))[0, 0] = 1
    # The kernel's own figure of the new process: what wait4 returns has its parent's in it.
    script = ("import sys; from h5fpconv.cli import main; status = main(sys.argv[1:]); "
              "print(*(line for line in open('/proc/self/status') if line.startswith('VmHWM')))"
              "; sys.exit(status)")
    done = subprocess.run([sys.executable, "-c", script, "convert", source, output, "--to", target, "-q",
                           *options], capture_output=True, text=True, timeout=300, check=True)
    assert 10_000 < int(done.stdout.split()[1]) < 200 * 1024, done.stdout


def test_same_file_from_one_core_and_from_all(source, tmp_path):
    """Neither values nor where they lie depend on who is first."""
    cores = os.sched_getaffinity(0)
    made = []
    try:
        for some in ({min(cores)}, cores):
            os.sched_setaffinity(0, some)
            run("convert", source, tmp_path / "out.h5", "--to", "e4m3", "-q")
            with h5py.File(tmp_path / "out.h5") as file:
                made.append([tool("h5dump", "-p", "-H", tmp_path / "out.h5"),
                             *(file[name].id.read_direct_chunk((0, 0)) if file[name].chunks
                               else numpy.asarray(file[name]).tobytes() for name in file)])
    finally:
        os.sched_setaffinity(0, cores)
    assert made[0] == made[1]


def test_progress_on_a_terminal_only(source, tmp_path):
    """A bar with bytes and time left; none in a pipe, none with --quiet."""
    command = [*PROGRAM, "convert", source, tmp_path / "out.h5", "--to", "bf16"]
    for options, is_shown in (((), True), (("--quiet",), False)):
        try:
            terminal, inner = pty.openpty()
        except OSError:
            pytest.skip("no terminals here")
        process = subprocess.Popen([*command, *options], stdout=subprocess.DEVNULL, stderr=inner,
                                   env={**os.environ, "TERM": "xterm", "COLUMNS": "100"})
        os.close(inner)
        text = b""
        try:
            while data := os.read(terminal, 65536):
                text += data
        except OSError:  # the other side is closed
            pass
        assert process.wait(timeout=60) == 0
        os.close(terminal)
        assert (b"MiB" in text and b":" in text) is is_shown, text
    done = subprocess.run(command, capture_output=True, check=True, timeout=60)
    assert done.stderr == b""
