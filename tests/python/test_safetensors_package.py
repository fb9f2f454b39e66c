"""Our reading and writing of safetensors against the format's own Python package.

SPDX-License-Identifier: MIT
"""
import pathlib
import random

import numpy
import safetensors
from safetensors.numpy import load_file, save_file

from h5fpconv.cli import main
from h5fpconv.safetensors.file import DTYPES, Reader, SafetensorsError, Writer, parse_header
from test_safetensors import ACCEPTED, HAND_MADE_DATA, HAND_MADE_HEADER, MALFORMED, mutated


def test_their_file_comes_back_byte_for_byte(tmp_path: pathlib.Path) -> None:
    rng = numpy.random.default_rng(2)
    arrays = {f"layer.{i}.{kind}": rng.integers(0, 2, (3, i), "u1").astype(kind)
              for i, kind in enumerate(["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2",
                                        "f4", "f8", "c8"])}
    arrays["scalar"] = numpy.array(3, "f4")
    theirs, h5, back = (str(tmp_path / name) for name in ("theirs", "a.h5", "back"))
    save_file(arrays, theirs, {"note": "größer \x01\x7f\"\\ \n"})
    assert main(["import", "-q", theirs, h5]) == 0
    assert main(["export", "-q", h5, back]) == 0
    assert pathlib.Path(back).read_bytes() == pathlib.Path(theirs).read_bytes()


def test_they_read_every_dtype_of_ours(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "ours"
    rng = random.Random(3)
    expected = {}
    with open(path, "wb") as file:
        writer = Writer(file, [(f"{dtype} {shape}", dtype, shape) for dtype in DTYPES
                               for shape in ((4, 2), (8,), (0,))], {"format": "np"})
        for tensor in writer.header.tensors:
            expected[tensor.name] = (tensor.dtype, list(tensor.shape), rng.randbytes(tensor.nbytes))
            writer.write(expected[tensor.name][2])
        writer.close()
    found = safetensors.deserialize(path.read_bytes())
    assert {name: (info["dtype"], info["shape"], bytes(info["data"]))
            for name, info in found} == expected
    with safetensors.safe_open(path, "np") as file:
        assert file.metadata() == {"format": "np"}


def theirs_accept(contents: bytes) -> bool:
    try:
        safetensors.deserialize(contents)
    except safetensors.SafetensorError:
        return False
    return True


# What the format's description forbids and their reader lets pass.
STRICTER = {"a name twice", "unknown key", "metadata key twice", "millions of items"}


def test_what_is_accepted_and_refused() -> None:
    assert [name for name, contents in ACCEPTED.items() if not theirs_accept(contents)] == []
    assert {name for name, (contents, _) in MALFORMED.items() if theirs_accept(contents)} <= STRICTER


def test_mutated_headers() -> None:
    """Nothing that they refuse is accepted; what they accept and we do not has a named reason."""
    rng = random.Random(8)
    both = 0
    for _ in range(20_000):
        text = mutated(rng, HAND_MADE_HEADER)
        theirs = theirs_accept(len(text).to_bytes(8, "little") + text + HAND_MADE_DATA)
        try:
            parse_header(text, len(HAND_MADE_DATA))
        except SafetensorsError as error:
            reasons = ("twice", "unknown key", "__metadata__ is not a JSON object")
            assert not theirs or any(reason in str(error) for reason in reasons), (text, error)
        else:
            assert theirs, text
            both += 1
    assert both > 500


def test_they_read_what_is_exported(tmp_path: pathlib.Path) -> None:
    values = numpy.random.default_rng(4).normal(size=(7, 5)).astype("f4")
    theirs, h5, back = (str(tmp_path / name) for name in ("theirs", "a.h5", "back"))
    save_file({"w": values}, theirs)
    assert main(["import", "-q", theirs, h5, "--to", "f16"]) == 0
    assert main(["export", "-q", h5, back]) == 0
    assert numpy.array_equal(load_file(back)["w"], values.astype("f2"))
    with Reader(back) as reader:
        assert reader.header.metadata is None
