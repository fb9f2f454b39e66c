"""PyTorch's CPU tensors as arguments, and its values against ours

SPDX-License-Identifier: MIT
"""
import numpy
import pytest
import torch

import fpconv

DTYPES = {
    "f64": torch.float64,
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "e5m2": torch.float8_e5m2,
    "e4m3": torch.float8_e4m3fn,
}
WORD = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
RANDOM = numpy.random.default_rng(12)


def numbers(*shape):
    return torch.from_numpy(RANDOM.standard_normal(shape).astype("f4"))


def codes_of(tensor):
    """As numpy has them, by torch's own reinterpretation."""
    codes = tensor.contiguous().view(WORD[tensor.element_size()]).numpy()
    return codes.view(f"u{tensor.element_size()}")


@pytest.mark.parametrize("name", DTYPES)
def test_tensors(name):
    tensor = numbers(6, 50).to(DTYPES[name])
    want = tensor.to(torch.float32).numpy()
    numpy.testing.assert_array_equal(fpconv.convert(tensor, "f32"), want)
    numpy.testing.assert_array_equal(fpconv.convert(tensor.T, "f32"), want.T)
    numpy.testing.assert_array_equal(fpconv.convert(tensor[1:, ::3], "f32"), want[1:, ::3])
    numpy.testing.assert_array_equal(fpconv.convert(tensor[0, 0], "f32"), want[0, 0])
    assert fpconv.convert(tensor[:, :0], "f32").shape == (6, 0)


@pytest.mark.parametrize("name", ["f16", "bf16", "e5m2", "e4m3"])
def test_encodes_to_the_same(name):
    """torch rounds to even, once; its e4m3 saturates."""
    x = numbers(100_000) * 2.0 ** torch.randint(-12, 8, (100_000,), generator=torch.manual_seed(1))
    x = x.to(torch.float32)
    numpy.testing.assert_array_equal(fpconv.encode(x, name, policy="ocp_sat"),
                                     codes_of(x.to(DTYPES[name])))


@pytest.mark.parametrize("name", ["f16", "bf16", "e5m2", "e4m3"])
def test_every_code_decodes_to_the_same(name):
    size = fpconv.format_info(name).storage.itemsize
    codes = torch.arange(1 << 8 * size).to(WORD[size]).view(DTYPES[name])
    numpy.testing.assert_array_equal(fpconv.decode(codes), codes.to(torch.float32).numpy())
    numpy.testing.assert_array_equal(fpconv.decode(codes_of(codes), name),
                                     codes.to(torch.float32).numpy())


def test_codes_of_torch():
    codes = torch.tensor([0x2a, 0xb8], dtype=torch.uint8)
    assert fpconv.decode(codes, "e4m3").tolist() == [0.3125, -1.0]
    assert fpconv.decode(torch.tensor([0x3f80], dtype=torch.int16), "bf16").tolist() == [1.0]


def test_memory_is_shared():
    tensor = numbers(1000).to(torch.bfloat16)
    source, format = fpconv._arrays.as_source(tensor, None, "x")
    assert format == "bf16"
    assert source.__array_interface__["data"][0] == tensor.data_ptr()
    tensor[0] = 2.0
    assert fpconv.decode(source, "bf16")[0] == 2.0
    del tensor
    assert fpconv.decode(source, "bf16")[0] == 2.0


def test_out_through_numpy():
    tensor = torch.zeros(5, dtype=torch.bfloat16)
    x = numbers(5)
    fpconv.encode(x, "bf16", out=tensor.view(torch.int16).numpy())
    numpy.testing.assert_array_equal(codes_of(tensor), codes_of(x.to(torch.bfloat16)))


def test_quantize():
    x = numbers(4, 64)
    got = fpconv.quantize(x.to(torch.bfloat16), "mxfp4")
    want = fpconv.quantize(x.to(torch.bfloat16).to(torch.float32).numpy(), "mxfp4")
    numpy.testing.assert_array_equal(got.codes, want.codes)
    numpy.testing.assert_array_equal(got.scales, want.scales)


def test_refused():
    with pytest.raises(TypeError, match="x has the dtype int64"):
        fpconv.encode(torch.arange(3), "e4m3")
    with pytest.raises(TypeError, match="DLPack type"):
        fpconv.encode(torch.zeros(3, dtype=torch.complex64), "e4m3")
    with pytest.raises(ValueError, match="device type meta"):
        fpconv.encode(torch.zeros(3, device="meta"), "e4m3")
    with pytest.raises(BufferError, match="detach"):
        fpconv.encode(torch.zeros(3, requires_grad=True), "e4m3")
