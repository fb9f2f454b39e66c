"""h5fpconv import and export: what arrives, what comes back, and what is refused.

SPDX-License-Identifier: MIT
"""
import json
import pathlib
import random

import fpconv
import fpconv.h5
import h5py
import numpy
import pytest

from h5fpconv.cli import main
from h5fpconv.commands import import_model
from h5fpconv.safetensors.file import DTYPES, Reader, Writer, tensor_bytes
from h5fpconv.safetensors.names import UnusableName, paths_of
from test_safetensors import HAND_MADE, MALFORMED, entry, file_of, mutated

Tensors = dict[str, tuple[str, tuple[int, ...]]]


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path


def write_model(path: pathlib.Path, tensors: Tensors,
                metadata: dict[str, str] | None = None) -> bytes:
    """A file of random bytes, by our writer; test_safetensors has it against bytes by hand."""
    rng = random.Random(1)
    with open(path, "wb") as file:
        writer = Writer(file, [(name, *entry) for name, entry in tensors.items()], metadata)
        for tensor in writer.header.tensors:
            writer.write(rng.randbytes(tensor.nbytes))
        writer.close()
    return path.read_bytes()


def round_trip(folder: pathlib.Path, *options: str) -> bytes:
    """model.safetensors to model.h5 and back, as bytes."""
    model, h5, back = (str(folder / name) for name in ("model.safetensors", "model.h5", "back"))
    assert main(["import", "--quiet", *options, model, h5]) == 0
    assert main(["export", "--quiet", h5, back]) == 0
    return pathlib.Path(back).read_bytes()


EVERY_DTYPE: Tensors = {f"{group}.{dtype}": (dtype, shape) for dtype in DTYPES
                        for group, shape in (("matrix", (3, 5, 8)), ("vector", (4,)),
                                             ("none", (2, 0, 3)))}
EVERY_DTYPE |= {f"scalar.{dtype}": (dtype, ()) for dtype, bits in DTYPES.items() if bits >= 8}


@pytest.mark.parametrize("names", ["groups", "flat"])
def test_every_dtype_comes_back_bit_for_bit(folder: pathlib.Path, names: str) -> None:
    metadata = {"format": "pt", "z": "", "a": "größer\n" * 20_000}
    written = write_model(folder / "model.safetensors", EVERY_DTYPE, metadata)
    assert round_trip(folder, "--names", names) == written


@pytest.mark.parametrize("part_bytes", [1, 8, 24, 40, 1000])
def test_in_parts_of_any_size(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch,
                              part_bytes: int) -> None:
    from h5fpconv.commands import export_model
    monkeypatch.setattr(import_model, "PART_BYTES", part_bytes)
    monkeypatch.setattr(export_model, "PART_BYTES", part_bytes)
    tensors: Tensors = {"f4": ("F4", (2, 7, 3)), "f6": ("F6_E2M3", (4, 5, 3)), "f32": ("F32", (5, 7)),
                        "next.f4": ("F4", (6, 1)), "next.f6": ("F6_E3M2", (2, 2))}
    written = write_model(folder / "model.safetensors", tensors)
    assert round_trip(folder) == written


def test_values_in_hdf5(folder: pathlib.Path) -> None:
    (folder / "model.safetensors").write_bytes(HAND_MADE)
    assert main(["import", "--quiet", str(folder / "model.safetensors"), str(folder / "a.h5")]) == 0
    with h5py.File(folder / "a.h5") as file:
        assert dict(file.attrs) == {"format": "pt", "note": "grüße"}
        assert list(file) == ["four", "none", "scalar", "six", "w"]
        assert file["w"].dtype == "<f4" and file["w"][()].tolist() == [[1, -1]]
        assert [fpconv.h5.format_of(file[name]) for name in ("four", "six")] == ["e2m1", "e2m3"]
        with fpconv.h5.registered("ocp"):
            four, six = numpy.empty((2, 2), "f4"), numpy.empty(4, "f4")
            file["four"].read_direct(four)
            file["six"].read_direct(six)
        assert four.tolist() == [[0.5, 1], [1.5, 2]]
        assert six.tolist() == [0.125, 0.25, 0.375, -7.5]
        assert file["none"].shape == (0, 3) and file["none"].dtype == "<i8"
        assert file["scalar"].shape == () and file["scalar"][()] is numpy.True_


def test_dtypes_that_are_bytes(folder: pathlib.Path) -> None:
    tensors: Tensors = {name: (name, (2, 3)) for name in ("F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ")}
    write_model(folder / "model.safetensors", tensors)
    assert main(["import", "-q", str(folder / "model.safetensors"), str(folder / "a.h5")]) == 0
    with h5py.File(folder / "a.h5") as file:
        for name in tensors:
            assert file[name].dtype == "u1" and file[name].attrs["safetensors_dtype"] == name
    with Reader(folder / "model.safetensors") as reader, h5py.File(folder / "a.h5") as file:
        data = bytearray(6)
        reader.read_into(reader.header.tensors[-1], 0, memoryview(data))
        assert file[reader.header.tensors[-1].name][()].tobytes() == data


def test_converted_on_the_way(folder: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    tensors: Tensors = {"a.weight": ("F32", (4, 64)), "a.bias": ("F32", (4,)),
                        "b.weight": ("BF16", (2, 2)), "steps": ("I64", ())}
    write_model(folder / "model.safetensors", tensors, {"format": "pt"})
    model, plain, output = (str(folder / name) for name in ("model.safetensors", "plain", "a.h5"))
    assert main(["import", model, output, "--to", "f16", "--only", "**/weight"]) == 0
    assert capsys.readouterr().out == f"{output}: 4 tensors, 1.0 KiB, 2 of them converted\n"
    assert main(["import", "-q", model, plain]) == 0
    with h5py.File(output) as file, h5py.File(plain) as unconverted:
        assert dict(file.attrs) == {"format": "pt"}
        formats = {name: fpconv.h5.format_of(file[name]) for name in map(
            lambda name: name.replace(".", "/"), tensors)}
        assert formats == {"a/weight": "f16", "a/bias": "f32", "b/weight": "f16", "steps": None}
        expected = fpconv.encode(unconverted["a/weight"][()], "f16")
        assert file["a/weight"][()].view("u2").tolist() == expected.tolist()
    assert sorted(path.name for path in folder.iterdir()) == ["a.h5", "model.safetensors", "plain"]
    assert main(["import", "-q", model, output, "--to", "mxfp4", "--only", "a.weight"]) == 0
    with h5py.File(output) as file:
        assert fpconv.h5.format_of(file["a/weight"]) == "f32"  # a.weight is no path
    assert main(["import", "-q", model, output, "--to", "mxfp4", "--only", "/a/weight"]) == 0
    with h5py.File(output) as file:
        assert file["a/weight"].attrs["scheme"] == b"mx"
    assert main(["import", "-q", model, output, "--only", "/a/weight"]) == 2
    assert "for what --to or --map converts" in capsys.readouterr().err


# ---------------------------------------------------------------------------
# Names
# ---------------------------------------------------------------------------

NAMES = {
    "encoder.0.weight": "/encoder/0/weight", "bias": "/bias", "a..b": "/a..b", ".a.b": "/.a/b",
    "a.b.": "/a/b.", "x": "/x", "x.y.z": "/x.y/z", "x.y.w": "/x.y/w", "..": "/..",
    "params/dense.kernel": "/params/dense/kernel", "ключ.ü": "/ключ/ü",
    ".".join("d" * 40): "/" + "/".join("d" * 31) + "/" + ".".join("d" * 9),
}


def test_names_as_groups() -> None:
    assert paths_of(NAMES, groups=True) == NAMES


def test_flat_names() -> None:
    assert paths_of(NAMES, groups=False) == {name: "/" + name for name in NAMES}


@pytest.mark.parametrize("options", [[], ["--names", "flat"]])
def test_names_come_back(folder: pathlib.Path, options: list[str]) -> None:
    written = write_model(folder / "model.safetensors", {n: ("U8", (2,)) for n in NAMES})
    assert round_trip(folder, *options) == written
    with h5py.File(folder / "model.h5") as file:
        kept = file["params/dense.kernel" if options else "params/dense/kernel"].attrs
        assert kept["safetensors_name"] == "params/dense.kernel"


UNUSABLE = {
    "": "''", ".": "'.'", "a/./b": "'a/./b'", "/a": "'/a'", "a/": "'a/'", "a//b": "'a//b'",
    "a\0b": "NUL character", "a/" * 64 + "b": "65 names deep, more than 64",
    "n" * 65_001: "more than 65000 bytes",
}


@pytest.mark.parametrize("name", UNUSABLE, ids=lambda name: repr(name[:9]))
@pytest.mark.parametrize("names", ["groups", "flat"])
def test_names_that_hdf5_cannot_hold(folder: pathlib.Path, capsys: pytest.CaptureFixture[str],
                                     name: str, names: str) -> None:
    write_model(folder / "model.safetensors", {name: ("U8", ()), "other": ("U8", ())})
    refused(folder, capsys, UNUSABLE[name], "--names", names)


@pytest.mark.parametrize("names, groups, message", [
    (["a.b", "a/b"], True, "tensors 'a.b' and 'a/b' would both be the dataset '/a/b'"),
    (["a", "a/b"], False, "tensor 'a' would be the group of tensor 'a/b'"),
    (["a", "a/b"], True, "tensor 'a' would be the group of tensor 'a/b'"),
])
def test_names_that_collide(names: list[str], groups: bool, message: str) -> None:
    with pytest.raises(UnusableName) as caught:
        paths_of(names, groups=groups)
    assert str(caught.value) == message


# ---------------------------------------------------------------------------
# Refused
# ---------------------------------------------------------------------------


def refused(folder: pathlib.Path, capsys: pytest.CaptureFixture[str], message: str,
            *options: str) -> None:
    """import fails with status 3 and one line that has the message, and leaves no file."""
    model, output = folder / "model.safetensors", folder / "model.h5"
    assert main(["import", *options, str(model), str(output)]) == 3
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1, captured.err
    assert captured.err.startswith(f"h5fpconv: {model}: ") and message in captured.err
    assert [path.name for path in folder.iterdir()] == ["model.safetensors"]


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_files(folder: pathlib.Path, capsys: pytest.CaptureFixture[str],
                         name: str) -> None:
    contents, message = MALFORMED[name]
    (folder / "model.safetensors").write_bytes(contents)
    refused(folder, capsys, message)


@pytest.mark.parametrize("contents, message", [
    (file_of({"a": entry(shape=[1] * 33, offsets=[0, 4])}, bytes(4)),
     "tensor 'a': 33 dimensions; HDF5 has up to 32"),
    (file_of({"a": entry(shape=[0, 2**63], offsets=[0, 0])}),
     "tensor 'a': a dimension of 9223372036854775808 is too large for HDF5"),
    (file_of({"__metadata__": {"": "x"}}), "__metadata__ '': an attribute of HDF5 has a name"),
    (file_of({"__metadata__": {"a\0": "x"}}), "none of them 0"),
    (file_of({"__metadata__": {"k" * 65_001: "x"}}), "a name of 1 to 65000 bytes"),
    (file_of({"__metadata__": {"a": "x\0"}}), "__metadata__ 'a': its value has a NUL character"),
], ids=range(6))
def test_beyond_hdf5(folder: pathlib.Path, capsys: pytest.CaptureFixture[str], contents: bytes,
                     message: str) -> None:
    (folder / "model.safetensors").write_bytes(contents)
    refused(folder, capsys, message)


def test_the_largest_that_hdf5_holds(folder: pathlib.Path) -> None:
    tensors: Tensors = {"n" * 65_000: ("U8", (1,)), "rank": ("F4", (2,) + (1,) * 31),
                        "wide": ("F32", (2**63 - 1, 0))}
    metadata = {"k" * 65_000: "v" * 1_000_000} | {str(i): "v" for i in range(3000)}
    written = write_model(folder / "model.safetensors", tensors, metadata)
    assert round_trip(folder) == written


def test_mutated_files(folder: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of 1500 broken files each is imported, or refused in one line and without an output."""
    rng = random.Random(66)
    model, output = folder / "model.safetensors", folder / "model.h5"
    statuses = {0: 0, 3: 0}
    for _ in range(1500):
        model.write_bytes(file_of(mutated(rng, HAND_MADE[8:-14])) + HAND_MADE[-14:])
        status = main(["import", "--quiet", str(model), str(output)])
        statuses[status] += 1
        captured = capsys.readouterr()
        if status == 0:
            assert captured.err == ""
            output.unlink()
        else:
            assert captured.err.count("\n") == 1 and captured.err.startswith("h5fpconv: ")
        assert [path.name for path in folder.iterdir()] == ["model.safetensors"]
    assert statuses[0] > 30 and statuses[3] > 1000


def test_an_old_output_stays(folder: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "model.safetensors").write_bytes(HAND_MADE[:-1])
    (folder / "model.h5").write_bytes(b"old")
    assert main(["import", str(folder / "model.safetensors"), str(folder / "model.h5")]) == 3
    assert (folder / "model.h5").read_bytes() == b"old"


@pytest.mark.parametrize("command, contents", [("import", HAND_MADE), ("export", b"")])
def test_statuses_of_files(folder: pathlib.Path, capsys: pytest.CaptureFixture[str], command: str,
                           contents: bytes) -> None:
    source, output = folder / "source", folder / "no folder" / "output"
    assert main([command, str(source), str(folder / "output")]) == 3  # there is no source
    source.write_bytes(contents)
    if command == "export":
        h5py.File(source, "w").close()
    assert main([command, str(source), str(output)]) == 4  # nor a folder
    assert main([command, str(source), str(source)]) == 2  # over itself
    assert "Traceback" not in capsys.readouterr().err


# ---------------------------------------------------------------------------
# Export
# ---------------------------------------------------------------------------


def read_tensors(path: pathlib.Path) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    with Reader(path) as reader:
        found = {}
        for tensor in reader.header.tensors:
            data = bytearray(tensor.nbytes)
            reader.read_into(tensor, 0, memoryview(data))
            found[tensor.name] = (tensor.dtype, tensor.shape, bytes(data))
        return found


def test_export_of_h5py_files(folder: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = numpy.random.default_rng(1)
    arrays = {"f2": rng.normal(size=(3, 4)).astype("f2"), "big/f8": rng.normal(size=5).astype(">f8"),
              "big/i2": numpy.arange(-3, 3, dtype=">i2"), "b": numpy.array([True, False]),
              "c8": numpy.array([1 + 2j, numpy.nan], "c8"), "u8": numpy.arange(4, dtype="u8"),
              "chunked": rng.normal(size=(100, 7)).astype("f4")}
    codes = rng.integers(0, 16, (5, 6), numpy.uint8)
    with h5py.File(folder / "a.h5", "w") as file:
        for name, array in arrays.items():
            file.create_dataset(name, data=array, **(
                {"chunks": (30, 2), "compression": "gzip"} if name == "chunked" else {}))
        four = file.create_dataset("four", codes.shape, fpconv.h5.dtype("e2m1"), chunks=(2, 5),
                                   compression="gzip")
        four.id.write(h5py.h5s.ALL, h5py.h5s.ALL, codes, mtype=four.id.get_type())
        file["again/u8"] = file["u8"]
        file["soft"] = h5py.SoftLink("/u8")
        file.attrs["format"] = "tf"
        file.attrs["fixed"] = numpy.bytes_("text")
        file.attrs["number"] = 3
        file["u8"].attrs["unit"] = "m"
    assert main(["export", str(folder / "a.h5"), str(folder / "a.safetensors")]) == 0
    captured = capsys.readouterr()
    assert captured.out == f"{folder / 'a.safetensors'}: 9 tensors, 2.9 KiB\n"
    assert captured.err.splitlines() == [
        "h5fpconv: left out: 1 attributes of the root group that are not one string each",
        "h5fpconv: left out: the attributes of 1 datasets",
        "h5fpconv: left out: 1 soft and external links"]
    expected = {name.replace("/", "."): (array.shape, array.astype(
        array.dtype.newbyteorder("<")).tobytes()) for name, array in arrays.items()}
    expected["four"] = (codes.shape, fpconv.pack(codes, "e2m1").tobytes())
    expected["again.u8"] = expected["u8"]
    found = read_tensors(folder / "a.safetensors")
    assert {name: dtype for name, (dtype, *_) in found.items()} == {
        "f2": "F16", "big.f8": "F64", "big.i2": "I16", "b": "BOOL", "c8": "C64", "u8": "U64",
        "again.u8": "U64", "chunked": "F32", "four": "F4"}
    assert {name: rest for name, (_, *rest) in found.items()} == {
        name: list(value) for name, value in expected.items()}
    with Reader(folder / "a.safetensors") as reader:
        assert reader.header.metadata == {"format": "tf", "fixed": "text"}


@pytest.mark.parametrize("kind, message", [
    (h5py.string_dtype(), "safetensors has no dtype for strings of"),
    (numpy.dtype([("x", "f4"), ("y", "f4")]), "no dtype for compounds of 8 bytes"),
    (numpy.dtype("c16"), "no dtype for compounds of 16 bytes"),
    (h5py.enum_dtype({"A": 0, "B": 1}), "no dtype for enumerations of"),
    (h5py.ref_dtype, "no dtype for references of"),
    (h5py.vlen_dtype("f4"), "no dtype for sequences of variable length"),
    (numpy.dtype("V5"), "no dtype for opaque values of 5 bytes"),
    ("hif8", "no dtype for hif8, which h5fpconv back decodes"),
], ids=range(8))
def test_what_export_refuses(folder: pathlib.Path, capsys: pytest.CaptureFixture[str],
                             kind: object, message: str) -> None:
    with h5py.File(folder / "a.h5", "w") as file:
        file.create_dataset("g/it", (2,), fpconv.h5.dtype("hif8") if kind == "hif8" else kind)
        file["other"] = numpy.float32([1])
    arguments = ["export", str(folder / "a.h5"), str(folder / "a.safetensors")]
    assert main(arguments) == 3
    error = capsys.readouterr().err
    assert "dataset '/g/it': " in error and message in error and error.count("\n") == 1
    assert not (folder / "a.safetensors").exists()
    assert main([*arguments, "--skip", "/g/*"]) == 0
    assert list(read_tensors(folder / "a.safetensors")) == ["other"]


def test_more_that_export_refuses(folder: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    def message(*options: str) -> str:
        assert main(["export", *options, str(folder / "a.h5"), str(folder / "b")]) == 3
        assert not (folder / "b").exists()
        return capsys.readouterr().err

    with h5py.File(folder / "a.h5", "w") as file:
        file["a/b"] = file["a.b"] = numpy.float32(1)
        file["null"] = h5py.Empty("f4")
        file.create_dataset("three", (3,), fpconv.h5.dtype("e2m1"))
    assert "dataset '/null': " in message() and "no values" in message()
    assert 'two tensors would have the name "a.b"' in message("--only", "a*", "--only", "b")
    assert 'tensor "three": 3 elements of 4 bits do not end at a byte' in message("--only", "three")


def test_export_refuses_scaled_tensors(folder: pathlib.Path,
                                       capsys: pytest.CaptureFixture[str]) -> None:
    with h5py.File(folder / "a.h5", "w") as file:
        file.create_group("w").attrs["fpconv_scaled_version"] = 1
        file["w/codes"] = numpy.zeros((2, 16), "u1")
        file["x"] = numpy.float32(1)
    arguments = ["export", str(folder / "a.h5"), str(folder / "b")]
    assert main(arguments) == 3
    assert "dataset '/w/codes': it is a part of a scaled tensor" in capsys.readouterr().err
    assert main([*arguments, "--skip", "/w/**"]) == 0


def test_json(folder: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "a").write_bytes(HAND_MADE)
    a, b, c = (str(folder / name) for name in "abc")
    assert main(["import", "--json", a, b]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "input": a, "output": b, "tensors": 5, "bytes": 14, "converted": 0, "metadata": 2}
    assert main(["export", "--json", b, c]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "input": b, "output": c, "tensors": 5, "bytes": 14, "metadata": 2}


def test_bytes_of_a_dtype() -> None:
    assert tensor_bytes("a", "F6_E2M3", (2, 2, 3)) == 9
