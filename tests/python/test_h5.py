"""fpconv.h5: stored codes against exact arithmetic, registration, and a private libhdf5

SPDX-License-Identifier: MIT
"""
import doctest
import os
import pathlib
import re
import shutil
import subprocess
import sys
import textwrap

import exact
import h5py
import numpy
import pytest
from datatypes import datatype
from h5py import h5s, h5t

import fpconv
import fpconv.h5

RANDOM = numpy.random.default_rng(9)


@pytest.fixture
def file(tmp_path):
    with h5py.File(tmp_path / "file.h5", "w") as file:
        yield file


@pytest.fixture(autouse=True)
def nothing_registered():
    yield
    fpconv.h5.unregister()


def numbers(*shape):
    return (RANDOM.standard_normal(shape) * 4).astype(numpy.float32)


def storage(name):
    return fpconv.format_info(name).storage


def want_codes(x, name, policy="ocp"):
    codes = [exact.encode(name, float(v), policy) for v in x.ravel()]
    return numpy.array(codes, storage(name)).reshape(x.shape)


def want_values(codes, name, policy="ocp"):
    values = [exact.decode(name, int(code), policy) for code in codes.ravel()]
    return numpy.array(values, numpy.float32).reshape(codes.shape)


def stored_codes(dataset):
    """What is in the file, without any conversion."""
    codes = numpy.zeros(dataset.shape, f"<u{dataset.id.get_type().get_size()}")
    if codes.size:
        dataset.id.read(h5s.ALL, h5s.ALL, codes, dataset.id.get_type())
    return codes


# ---------------------------------------------------------------------------
# Datatypes
# ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", exact.FIELDS)
def test_dtype(name):
    assert fpconv.h5.dtype(name).id.equal(datatype(name))
    assert fpconv.h5.dtype(name).id.get_size() == storage(name).itemsize


def test_dtype_of_wide_formats():
    assert fpconv.h5.dtype("f32").id.equal(h5t.NATIVE_FLOAT)
    assert fpconv.h5.dtype(numpy.float64).id.equal(h5t.NATIVE_DOUBLE)
    hif8 = fpconv.h5.dtype("hif8").id
    assert (hif8.get_class(), hif8.get_size(), hif8.get_tag()) == (h5t.OPAQUE, 1, b"fpconv:hif8")
    with pytest.raises(ValueError, match="format is 'e4m4'"):
        fpconv.h5.dtype("e4m4")


@pytest.mark.parametrize("name", fpconv.FORMATS)
def test_format_of(name, file):
    kind = fpconv.h5.dtype(name)
    dataset = file.create_dataset("d", 3, kind)
    for x in (kind, kind.id, dataset, dataset.id, dataset.id.get_type()):
        assert fpconv.h5.format_of(x) == name
    kind.id.commit(file.id, b"t")
    assert fpconv.h5.format_of(file["t"]) == name


def test_format_of_others(file):
    for order in (h5t.ORDER_LE, h5t.ORDER_BE):
        assert fpconv.h5.format_of(datatype("bf16", order)) == "bf16"
    e3m4 = datatype("e4m3")
    e3m4.set_fields(7, 4, 3, 0, 4)
    other_bias = datatype("e4m3")
    other_bias.set_ebias(8)
    padded = datatype("e4m3")
    padded.set_fields(6, 3, 3, 0, 3)
    padded.set_precision(7)
    opaque = h5t.create(h5t.OPAQUE, 1)
    opaque.set_tag(b"other")
    for kind in (e3m4, other_bias, padded, opaque, h5t.STD_U8LE, h5t.C_S1, h5t.IEEE_F32BE,
                 h5t.array_create(h5t.IEEE_F32LE, (3,))):
        assert fpconv.h5.format_of(kind) == ("f32" if kind == h5t.IEEE_F32BE else None)
    assert fpconv.h5.format_of(file.create_dataset("i", 3, "i4")) is None
    with pytest.raises(TypeError, match="x is a list, neither a dataset nor a datatype"):
        fpconv.h5.format_of([1])


# ---------------------------------------------------------------------------
# create_dataset, write, read: nothing is registered
# ---------------------------------------------------------------------------


@pytest.mark.parametrize("policy", fpconv.POLICIES)
@pytest.mark.parametrize("name", exact.NARROW)
def test_round_trip(name, policy, file):
    x = numbers(7, 30)
    want = want_codes(x, name, policy)
    dataset = fpconv.h5.create_dataset(file, "d", x, name, policy=policy)
    assert fpconv.h5.format_of(dataset) == name and dataset.shape == x.shape
    numpy.testing.assert_array_equal(stored_codes(dataset), want)
    back = fpconv.h5.read(dataset, policy=policy)
    assert back.dtype == numpy.float32
    numpy.testing.assert_array_equal(back, want_values(want, name, policy))
    numpy.testing.assert_array_equal(fpconv.h5.read(dataset, name), want)
    file.flush()
    numpy.testing.assert_array_equal(fpconv.h5.read(file["d"], "f64", policy=policy), back)


def test_big_endian(file):
    x = numbers(40)
    want = want_codes(x, "bf16")
    dataset = file.create_dataset("d", x.shape, h5py.Datatype(datatype("bf16", h5t.ORDER_BE)))
    fpconv.h5.write(dataset, x)
    assert stored_codes(dataset).byteswap().tolist() == want.tolist()
    numpy.testing.assert_array_equal(fpconv.h5.read(dataset), want_values(want, "bf16"))
    numpy.testing.assert_array_equal(fpconv.h5.read(dataset, "bf16"), want)
    wide = file.create_dataset("w", data=x.astype(">f4"))
    numpy.testing.assert_array_equal(fpconv.h5.read(wide), x)
    numpy.testing.assert_array_equal(fpconv.h5.read(wide, "bf16"), want)


@pytest.mark.parametrize("chunks", [None, (3, 4)])
@pytest.mark.parametrize("selection", [
    (), ..., 3, -1, numpy.s_[2:5], numpy.s_[:, 4], numpy.s_[1:9:3, ::2], numpy.s_[..., 2:4], (2, 7),
    numpy.s_[5:5], numpy.s_[0:100], numpy.s_[-3:, 1:]])
def test_selections(selection, chunks, file):
    x = numbers(10, 9)
    dataset = fpconv.h5.create_dataset(file, "d", x, "e4m3", chunks=chunks)
    want = want_values(want_codes(x, "e4m3"), "e4m3")
    numpy.testing.assert_array_equal(fpconv.h5.read(dataset, selection=selection), want[selection])
    part = numbers(*want[selection].shape)
    fpconv.h5.write(dataset, part, selection)
    want[selection] = want_values(want_codes(part, "e4m3"), "e4m3")
    numpy.testing.assert_array_equal(fpconv.h5.read(dataset), want)


def test_shapes_and_options(file):
    for i, x in enumerate((numbers(1)[0:1].reshape(()), numbers(0), numbers(3, 0, 2), numbers(2, 3, 4).T)):
        dataset = fpconv.h5.create_dataset(file, str(i), x, "bf16")
        numpy.testing.assert_array_equal(fpconv.h5.read(dataset), want_values(want_codes(x, "bf16"), "bf16"))
    dataset = fpconv.h5.create_dataset(file, "z", numbers(1000), "e4m3", chunks=(100,), compression="gzip",
                                       shuffle=True)
    assert dataset.chunks == (100,) and dataset.compression == "gzip" and dataset.shuffle
    assert fpconv.h5.create_dataset(file, None, [1, 2], "e4m3").name is None
    out = numpy.zeros(1000, "f8")
    assert fpconv.h5.read(dataset, "f64", out=out) is out
    numpy.testing.assert_array_equal(out, fpconv.h5.read(dataset))
    codes = numpy.zeros(1000, "u1")
    assert fpconv.h5.read(dataset, "e4m3", out=codes) is codes
    numpy.testing.assert_array_equal(codes, stored_codes(dataset))


def test_codes_are_written_as_they_are(file):
    codes = numpy.arange(256, dtype=numpy.uint8)
    for name in ("e4m3", "e5m2", "hif8"):
        dataset = file.create_dataset(name, 256, fpconv.h5.dtype(name))
        fpconv.h5.write(dataset, codes, src=name)
        numpy.testing.assert_array_equal(stored_codes(dataset), codes)
    fpconv.h5.write(file["e4m3"], codes, src="e5m2")
    numpy.testing.assert_array_equal(stored_codes(file["e4m3"]), fpconv.convert(codes, "e4m3", "e5m2"))


def test_errors(file):
    x = numbers(4)
    dataset = fpconv.h5.create_dataset(file, "d", x, "e4m3")
    integers = file.create_dataset("i", 3, "i4")
    null = file.create_dataset("n", data=h5py.Empty("f4"))
    cases = [
        (lambda: fpconv.h5.read(integers), TypeError, "the dataset '/i' has the datatype int32"),
        (lambda: fpconv.h5.write(integers, x), TypeError, "the dataset '/i' has the datatype int32"),
        (lambda: fpconv.h5.read(null), ValueError, "'/n' has no dataspace"),
        (lambda: fpconv.h5.write(dataset, x[:3]), ValueError, r"x has the shape \(3,\), the selection \(4,\)"),
        (lambda: fpconv.h5.read(dataset, selection=4), IndexError, "index 4 into an axis of 4"),
        (lambda: fpconv.h5.read(dataset, selection=(0, 0)), IndexError, "2 indices into 1 axes"),
        (lambda: fpconv.h5.read(dataset, selection=numpy.s_[::-1]), IndexError, "a step of -1"),
        (lambda: fpconv.h5.read(dataset, "i4"), ValueError, "dtype is 'i4'"),
        (lambda: fpconv.h5.read(dataset, out=numpy.zeros(3, "f4")), ValueError, "out has the shape"),
        (lambda: fpconv.h5.create_dataset(file, "x", x, "e4"), ValueError, "format is 'e4'"),
        (lambda: fpconv.h5.create_dataset(file, "x", x.astype("i4"), "e4m3"), TypeError, "x has the dtype int32"),
    ]
    for call, error, message in cases:
        with pytest.raises(error, match=message):
            call()
    assert "x" not in file


# ---------------------------------------------------------------------------
# Registration
# ---------------------------------------------------------------------------


@pytest.mark.parametrize("profile, policy", [("ocp", "ocp"), ("ocp_sat", "ocp_sat")])
@pytest.mark.parametrize("name", exact.FIELDS)
def test_registered(name, profile, policy, file):
    """h5py's own reading and writing."""
    x = numbers(300)
    x[:4] = 440, -1e5, 6.5, 7.9
    want = want_codes(x, name, policy)
    fpconv.h5.register(profile)
    dataset = file.create_dataset("d", x.shape, fpconv.h5.dtype(name))
    dataset[...] = x
    numpy.testing.assert_array_equal(stored_codes(dataset), want)
    values = want_values(want, name, policy)
    numpy.testing.assert_array_equal(dataset[...], values)
    numpy.testing.assert_array_equal(dataset.astype("f4")[10:200:3], values[10:200:3])


@pytest.mark.parametrize("name", exact.FIELDS)
def test_repaired(name, file):
    """HDF5's rule, of which ties of f16 differ between versions."""
    x = numbers(300)
    fpconv.h5.register()
    dataset = file.create_dataset("d", data=x, dtype=fpconv.h5.dtype(name))
    numpy.testing.assert_array_equal(stored_codes(dataset), want_codes(x, name, "hdf5"))


ROUNDED_TWICE = numpy.float64([1.0625 + 2.0**-20, 1.0625 - 2.0**-20, 1.1875 - 2.0**-20])


@pytest.mark.parametrize("dtype", [numpy.float32, numpy.float64])
def test_data_is_rounded_once(dtype, file):
    """A dataset made with its data: h5py would make float16 of it before HDF5 sees it."""
    x = ROUNDED_TWICE.astype(dtype)
    want = [0x39, 0x38, 0x39]
    assert want_codes(x, "e4m3").tolist() == want
    assert want_codes(x.astype("f2"), "e4m3").tolist() != want
    fpconv.h5.register("ocp")
    kind = fpconv.h5.dtype("e4m3")
    assert stored_codes(file.create_dataset("a", data=x, dtype=kind)).tolist() == want
    assert stored_codes(file.create_dataset("b", data=x.tolist(), dtype=kind)).tolist() == want
    file.attrs.create("c", x, dtype=kind)
    attribute = file.attrs.get_id("c")
    codes = numpy.zeros(3, "u1")
    attribute.read(codes, attribute.get_type())
    assert codes.tolist() == want


def test_compounds(file):
    fpconv.h5.register("ocp")
    kind = h5t.create(h5t.COMPOUND, 8)  # room for h5py's float16 and float32
    kind.insert(b"a", 0, datatype("e4m3"))
    kind.insert(b"b", 4, datatype("bf16"))
    dataset = file.create_dataset("d", 50, h5py.Datatype(kind))
    x = numpy.zeros(50, [("a", "f4"), ("b", "f4")])
    x["a"], x["b"] = numbers(50), numbers(50)
    dataset[...] = x
    got = dataset[...]
    for member, name in (("a", "e4m3"), ("b", "bf16")):
        numpy.testing.assert_array_equal(got[member], want_values(want_codes(x[member], name), name))


def codes_of_448(file):
    return stored_codes(file.create_dataset(None, data=numpy.float32([448]), dtype=fpconv.h5.dtype("e4m3")))


def test_register_and_unregister(file):
    before = codes_of_448(file).tolist()
    assert before == [0x78]  # HDF5's e4m3 ends at 240
    fpconv.h5.register("ocp")
    assert codes_of_448(file).tolist() == [0x7e]
    fpconv.h5.register("repaired")
    assert codes_of_448(file).tolist() == [0x78]
    fpconv.h5.unregister()
    fpconv.h5.unregister()
    assert codes_of_448(file).tolist() == before
    with pytest.raises(ValueError, match="no profile 'best'; there are repaired, identical, ocp, ocp_sat"):
        fpconv.h5.register("best")


def test_context_manager(file):
    with fpconv.h5.registered("ocp") as report:
        assert report.profile == "ocp" and codes_of_448(file).tolist() == [0x7e]
        with fpconv.h5.registered("identical"):
            assert codes_of_448(file).tolist() == [0x78]
        assert codes_of_448(file).tolist() == [0x7e]
        with pytest.raises(KeyError):
            with fpconv.h5.registered("repaired"):
                raise KeyError
        assert codes_of_448(file).tolist() == [0x7e]
    assert codes_of_448(file).tolist() == [0x78]


def test_report():
    fpconv.h5.register("repaired")
    report = fpconv.h5.report()
    assert report.profile == "repaired"
    assert report.library_version == h5py.version.hdf5_version_tuple
    assert report.registered_count == sum(pair.registered for pair in report.pairs) > 100
    by_name = {(p.src, p.dst, p.src_order, p.dst_order): p for p in report.pairs}
    assert len(by_name) == len(report.pairs)
    pair = by_name["f32", "e4m3", "<", "<"]
    assert pair.registered and pair.probes > 1000 and 0 < pair.differed < pair.probes
    assert "lost carry" in pair.bugs and "carry" in pair.reason
    assert by_name["f32", "hif8", "<", "|"].probes == 0
    fpconv.h5.register("ocp")
    assert fpconv.h5.report().profile == "ocp" and report.profile == "repaired"


def test_profiles_are_the_plugins():
    from fpconv import _plugin
    count = _plugin.lib.FPCONV_H5_PROFILE_COUNT
    assert fpconv.h5.PROFILES == tuple(
        _plugin.ffi.string(_plugin.lib.fpconv_h5_profile_name(i)).decode() for i in range(count))


def test_doctests():
    result = doctest.testmod(fpconv.h5)
    assert result.failed == 0 and result.attempted > 0


# ---------------------------------------------------------------------------
# An h5py with a libhdf5 of its own
# ---------------------------------------------------------------------------


def run(script, **environment):
    return subprocess.run([sys.executable, "-c", textwrap.dedent(script)], text=True, timeout=120,
                          capture_output=True, env={**os.environ, **environment})


def loaded_libhdf5():
    """The libraries of HDF5 in this process, which h5py uses, by the names it knows them by."""
    paths = {line.split()[-1] for line in pathlib.Path("/proc/self/maps").read_text().splitlines()
             if re.search(r"/libhdf5[^/]*\.so", line)}
    return {re.search(r"libhdf5\w*\.so\.\d+", path)[0]: path for path in paths}


@pytest.fixture
def private_h5py(tmp_path):
    """A copy of h5py that uses copies of libhdf5 and libhdf5_hl under other names, as pip's do."""
    libraries = loaded_libhdf5()
    assert libraries
    site = tmp_path / "site"
    shutil.copytree(pathlib.Path(h5py.__file__).parent, site / "h5py")
    for name, path in libraries.items():
        shutil.copy(path, site / name.replace("hdf5", "hdf9"))
    for copy in site.rglob("*.so*"):
        content = copy.read_bytes()
        for name in libraries:
            old = name.encode() + b"\x00"
            content = content.replace(b"\x00" + old, b"\x00" + old.replace(b"hdf5", b"hdf9"))
        copy.write_bytes(content)
    return {"PYTHONPATH": f"{site}:{os.environ['PYTHONPATH']}", "LD_LIBRARY_PATH": str(site)}


def test_private_copy(private_h5py):
    """It cannot be registered, which is said; create_dataset and read work."""
    result = run("""
        import h5py, numpy, tempfile, fpconv.h5
        try:
            fpconv.h5.register("ocp")
        except fpconv.h5.RegistrationError as error:
            print("refused:", error)
        with h5py.File(tempfile.mkdtemp() + "/f.h5", "w") as file:
            dataset = fpconv.h5.create_dataset(file, "d", numpy.float32([448, 0.3]), "e4m3")
            print(fpconv.h5.read(dataset).tolist())
        fpconv.h5.unregister()
        """, **private_h5py)
    assert result.returncode == 0, result.stderr
    refused, values = result.stdout.splitlines()
    assert re.match(r"refused: cannot register with HDF5: .*HDF5 is in use here as \S*libhdf9\S*, a "
                    r"private copy\. This needs an h5py that uses the system's libhdf5", refused)
    assert values == "[448.0, 0.3125]"


def test_plugin_that_does_not_load():
    """As where the libhdf5 that it is linked with is not installed."""
    result = run("""
        import sys, fpconv, fpconv.h5
        sys.modules["fpconv._plugin"] = None
        try:
            fpconv.h5.register()
        except fpconv.h5.RegistrationError as error:
            print(error)
        """)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("fpconv's plugin for HDF5 cannot be loaded: ")
