"""pip install and meson install both give working packages and a working command

SPDX-License-Identifier: MIT

Meson sets FPCONV_TEST_SOURCE and FPCONV_TEST_BUILD, the folders of the sources and the build.
"""
import importlib.util
import json
import os
import pathlib
import shutil
import site
import subprocess
import sys
import venv

SOURCE = pathlib.Path(os.environ["FPCONV_TEST_SOURCE"])
BUILD = pathlib.Path(os.environ["FPCONV_TEST_BUILD"])
ENVIRONMENT = {name: value for name, value in os.environ.items()
               if name not in ("PYTHONPATH", "LD_LIBRARY_PATH", "DESTDIR")}

USE = """
import pathlib, tempfile
import h5py, numpy
import fpconv, fpconv.h5
folder = pathlib.Path(fpconv.__file__).parent
assert (folder / "py.typed").is_file()
assert fpconv.encode([0.3, -1.0], "e4m3").tolist() == [0x2a, 0xb8]
assert fpconv.dequantize(fpconv.quantize([[1.0, 3.0]], "mxfp4")).tolist() == [[1.0, 3.0]]
fpconv.h5.register("ocp")
with h5py.File(tempfile.mkdtemp() + "/f.h5", "w") as file:
    dataset = file.create_dataset("d", data=numpy.float32([448.0]), dtype=fpconv.h5.dtype("e4m3"))
    assert dataset[...].tolist() == [448.0]
print(folder)
"""


def run(*command, environment=ENVIRONMENT, timeout=120, cwd="/"):
    result = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=timeout,
                            env=environment, cwd=cwd)
    assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
    return result.stdout


def check_command(command, environment, tmp_path):
    """It converts a file."""
    import h5py
    import numpy
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file["w"] = numpy.linspace(-1, 1, 1000, dtype="f4")
    run(command, "convert", "--to", "e4m3", tmp_path / "in.h5", tmp_path / "out.h5",
        environment=environment)
    with h5py.File(tmp_path / "out.h5") as file:
        assert file["w"].id.get_type().get_size() == 1
    assert "usage: h5fpconv" in run(command, "--help", environment=environment)


def package_files():
    """Every file of the packages, apart from what only building needs."""
    folders = SOURCE / "python/fpconv", SOURCE / "python/h5fpconv"
    return {str(path.relative_to(SOURCE / "python")) for folder in folders for path in folder.rglob("*")
            if path.is_file() and path.name not in ("meson.build", "binding.py")
            and "__pycache__" not in path.parts}


def test_build_folder_has_byte_code():
    """Python need not compile the copies of which it is the byte code: it has their time."""
    for path in sorted(package_files()):
        copy = BUILD / "python" / path
        if copy.suffix == ".py":
            code = pathlib.Path(importlib.util.cache_from_source(str(copy))).read_bytes()
            assert int.from_bytes(code[8:12], "little") == int(copy.stat().st_mtime), path


def build_options():
    return {option["name"]: option["value"]
            for option in json.loads(run("meson", "introspect", "--buildoptions", BUILD))}


def test_meson_install(tmp_path):
    run("meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", tmp_path)
    options = build_options()
    packages, = tmp_path.rglob("fpconv/__init__.py")
    packages = packages.parent.parent
    if options["prefix"] in ("/usr", "/usr/local"):
        assert "/" + str(packages.relative_to(tmp_path)) in site.getsitepackages()
    if options["prefix"] in ("/usr", "/usr/local") and shutil.which("dpkg-query"):
        described, = tmp_path.rglob("fpconv-hdf5.pc")
        folders = run("pkg-config", "--variable", "pc_path", "pkg-config").strip().split(":")
        assert "/" + str(described.parent.relative_to(tmp_path)) in folders
    assert package_files() <= {str(path.relative_to(packages)) for path in packages.rglob("*")}
    environment = {**ENVIRONMENT, "PYTHONPATH": str(packages)}
    assert run(sys.executable, "-c", USE, environment=environment).strip() == str(packages / "fpconv")
    command = tmp_path / options["prefix"].lstrip("/") / options["bindir"] / "h5fpconv"
    check_command(command, environment, tmp_path)


def test_pip_install(tmp_path):
    """Into a virtual environment, without the network; warnings are errors as in the build folder."""
    copy = tmp_path / "source"
    shutil.copytree(SOURCE, copy, symlinks=True,
                    ignore=lambda folder, names: [n for n in names if n.startswith((".git", "build"))
                                                  and n != ".gitignore"])
    place = tmp_path / "venv"
    venv.create(place, system_site_packages=True, with_pip=True)
    warnings = "true" if build_options()["werror"] else "false"
    run(place / "bin/pip", "install", "--no-build-isolation", "--no-index",
        f"--config-settings=setup-args=-Dwerror={warnings}", copy, timeout=800)
    packages, = place.rglob("fpconv/__init__.py")
    packages = packages.parent.parent
    installed = {str(path.relative_to(packages)) for path in packages.rglob("*")}
    assert package_files() <= installed
    assert not [name for name in installed if "mesonpy" in name]
    assert not [*place.rglob("libfpconv*")], "the C libraries are not the package's"
    assert run(place / "bin/python", "-c", USE).strip() == str(packages / "fpconv")
    check_command(place / "bin/h5fpconv", ENVIRONMENT, tmp_path)
    run(place / "bin/pip", "uninstall", "--yes", "fpconv")
    assert not [*place.rglob("fpconv/__init__.py")]
