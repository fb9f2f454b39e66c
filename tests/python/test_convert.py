"""h5fpconv convert and back: what is converted, and that all else stays as it was.

SPDX-License-Identifier: MIT

The files come from their real writers (specimens.py); HDF5's own tools say whether
anything changed that should not.
"""
import json
import os
import pathlib
import resource
import shutil

import fpconv
import fpconv.h5
import h5py
import numpy
import pytest
import specimens
from command import converted, dump, errors, run, tool
from h5py import h5ds

from h5fpconv.hdf5 import calls

WRITERS = {
    "network": specimens.network,
    "storage": specimens.storage,
    "everything": specimens.everything,
    "latest": lambda path: specimens.everything(path, "latest"),
    "v18": lambda path: specimens.everything(path, ("v108", "latest")),
    "user_block": specimens.with_user_block,
    "paged": specimens.paged,
    "netcdf": specimens.netcdf,
    "h5import": specimens.h5import,
    "pytables": specimens.pytables,
}


def needs(writer: str) -> None:
    """Skips where the writer is not installed."""
    if writer == "netcdf" and not shutil.which("ncgen"):
        pytest.skip("no ncgen")
    if writer == "pytables":
        pytest.importorskip("tables")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """One file of each writer, made when it is asked for."""
    folder, made = tmp_path_factory.mktemp("specimens"), {}

    def file(writer: str) -> pathlib.Path:
        if writer not in made:
            needs(writer)
            made[writer] = folder / f"{writer}.h5"
            here = os.getcwd()
            os.chdir(folder)  # external files are named relative to it
            try:
                WRITERS[writer](str(made[writer]))
            finally:
                os.chdir(here)
        return made[writer]

    return file


def top_level(path) -> list[str]:
    with h5py.File(path) as file:
        return list(file)


def float_datasets(path, group: str = "net") -> dict[str, numpy.ndarray]:
    """The values of the real floating-point datasets below a group, by path."""
    found = {}
    with h5py.File(path) as file:

        def add(name, item):
            is_float = isinstance(item, h5py.Dataset) and item.dtype.kind == "f"
            if is_float and item.shape is not None:
                found[f"/{group}/{name}"] = item

        file[group].visititems(add)
        return {name: item[()] for name, item in found.items()
                if "blosc" not in name}


# ---------------------------------------------------------------------------
# What is not chosen
# ---------------------------------------------------------------------------


@pytest.mark.parametrize("writer", WRITERS)
def test_untouched_file_is_the_same(files, tmp_path, writer, monkeypatch):
    """With nothing to convert, h5dump prints the same and h5diff finds nothing."""
    source, output = files(writer), tmp_path / "out.h5"
    monkeypatch.chdir(source.parent)
    run("convert", source, output, "--to", "bf16", "--only", "/no/such/dataset")
    assert dump(output, "-p") == dump(source, "-p")
    # h5diff lacks a filter for these two, and says so, but no difference
    tool("h5diff", source, output, statuses=(0, 2) if writer in ("storage", "pytables") else (0,))
    assert raw_chunks(output) == raw_chunks(source)


def raw_chunks(path) -> dict[str, list[tuple[int, bytes]]]:
    """All chunks of a file as they lie in it, with the filters left out of each."""
    found = {}
    with h5py.File(path) as file:

        def add(name, item):
            if isinstance(item, h5py.Dataset) and item.chunks and item.dtype.kind != "O":
                infos = map(item.id.get_chunk_info, range(item.id.get_num_chunks()))
                found[name] = sorted((i.chunk_offset, *item.id.read_direct_chunk(i.chunk_offset))
                                     for i in infos)

        file.visititems(add)
    return found


@pytest.mark.parametrize("target", ["bf16", "e2m1_packed"])
@pytest.mark.parametrize("writer", [w for w in WRITERS if w not in ("netcdf",)])
def test_rest_of_the_file_is_the_same(files, tmp_path, writer, target, monkeypatch):
    source, output = files(writer), tmp_path / "out.h5"
    monkeypatch.chdir(source.parent)
    run("convert", source, output, "--to", target, "--only", "/net/**")
    for name in top_level(source):
        if name not in ("net", "links", "references"):  # which lead to converted datasets
            tool("h5diff", source, output, name)
            with h5py.File(source) as file:
                option = {h5py.Group: "-g", h5py.Dataset: "-d"}[type(file[name])]
            assert dump(output, "-p", option, name) == dump(source, "-p", option, name), name


def test_user_block(files, tmp_path):
    source, output = files("user_block"), tmp_path / "out.h5"
    run("convert", source, output, "--to", "bf16")
    assert output.read_bytes()[:1024] == source.read_bytes()[:1024]
    assert b"not HDF5's own" in output.read_bytes()[:1024]
    tool("h5dump", "-H", output)


@pytest.mark.parametrize("writer", ["everything", "latest", "paged"])
def test_links_keep_their_order_and_objects(files, tmp_path, writer):
    source, output = files(writer), tmp_path / "out.h5"
    run("convert", source, output, "--to", "e4m3", "--only", "/net/**")
    with h5py.File(source) as old, h5py.File(output) as new:
        assert list(new["net"]) == list(old["net"]) == ["zeta", "alpha", "mid"]
        assert list(new["ordered"].attrs) == list("zyxabc")
        assert list(new["many"].attrs) == [f"a{i}" for i in reversed(range(50))]
        assert new["links/hard"] == new["net/alpha"]
        assert new["links/cycle"] == new["/"] and new["links/self/self"] == new["links"]
        assert new["a_user/points"].id.get_type() == new["types/z_point"].id
        assert new["a_user/points"].id.get_type().committed()
        assert new["a_user"].attrs.get_id("number").get_type().committed()
        for list_name in ("get_file_space_strategy", "get_userblock", "get_sizes"):
            assert getattr(new.id.get_create_plist(), list_name)() == \
                getattr(old.id.get_create_plist(), list_name)()


def test_references_lead_to_the_new_objects(files, tmp_path):
    source, output = files("everything"), tmp_path / "out.h5"
    run("convert", source, output, "--to", "bf16", "--only", "/net/**")
    with h5py.File(source) as old, h5py.File(output) as new:
        group = new["references"]
        assert [new[r] for r in group["objects"]] == [new["net/alpha"], new["links"], new["net/mid"]]
        assert new[group.attrs["object"]] == new["net/alpha"]
        assert not group["unset"][0] and new[group["unset"][1]] == group
        table = group["table"][...]
        assert new[table["where"][1]] == group and table["n"].tolist() == [7, 8]
        assert [new[r] for r in group["lists"][0]] == [new["net/alpha"], new["net/mid"], group]
        for reference, twin in zip(group["regions"], old["references/regions"]):
            assert new[reference] == new[old[twin].name]
            assert new[reference].regionref.selection(reference) == \
                old[twin].regionref.selection(twin)
            assert new[reference].id.get_type() != old[twin].id.get_type()
        temperature = new["scales/temperature"]
        assert temperature.dims[0][0] == new["scales/lat"]
        assert [d.label for d in temperature.dims] == ["lat", "lon"]
        assert h5ds.is_scale(new["scales/lat"].id)


def test_variable_length_values_are_freed_after_an_exception(tmp_path):
    """16 MiB that are read, and given up on, sixteen times over."""
    with h5py.File(tmp_path / "in.h5", "w") as file:
        dataset = file.create_dataset("x", 1, h5py.vlen_dtype("i1"))
        dataset[0] = numpy.zeros(16 << 20, "i1")
        dataset, space = dataset.id, dataset.id.get_space()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(16):
            with pytest.raises(KeyError), calls.values_of(dataset, space, space):
                raise KeyError
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 128 << 10  # KiB


def test_references_to_a_scaled_tensor(tmp_path):
    """They lead to its group."""
    source, output = tmp_path / "in.h5", tmp_path / "out.h5"
    with h5py.File(source, "w") as file:
        file["w"] = numpy.ones((4, 64), "f4")
        file.attrs["w"] = file["w"].ref
    run("convert", source, output, "--to", "mxfp4")
    with h5py.File(output) as file:
        assert file[file.attrs["w"]] == file["w"] and "codes" in file["w"]


@pytest.mark.parametrize("place", ["an attribute", "a dataset", "a member of variable length"])
def test_what_regions_point_into_stays_a_dataset(tmp_path, place):
    """A region of a group cannot be; neither does inspect recommend it."""
    source, output, chosen_map = tmp_path / "in.h5", tmp_path / "out.h5", tmp_path / "map"
    with h5py.File(source, "w") as file:
        for name in ("w", "other"):
            file[name] = numpy.random.default_rng(1).standard_normal((4, 64)).astype("f4")
        region = file["w"].regionref[1:3]
        if place == "an attribute":
            file["other"].attrs["part"] = region
        elif place == "a dataset":
            file.create_dataset("parts", (3,), h5py.regionref_dtype, chunks=(2,))[1] = region
        else:
            kind = numpy.dtype([("n", "i4"), ("parts", h5py.vlen_dtype(h5py.regionref_dtype))])
            file.create_dataset("parts", (2,), kind)[0] = (1, numpy.array([region], object))
    found = json.loads(run("convert", source, output, "--to", "mxfp4", "--json"))
    kept = {d["dataset"]: d["kept"] for d in found["datasets"] if "kept" in d}
    assert kept == {"/w": "a region reference points into it"}
    run("inspect", source, "--budget", "18dB", "--map", chosen_map)
    lines = dict(line.split() for line in chosen_map.read_text().splitlines() if line.startswith("/"))
    assert lines["/w"] not in fpconv.SCHEMES and lines["/other"] in fpconv.SCHEMES, lines
    output.unlink()
    run("convert", source, output, "--map", chosen_map)


def test_dimension_scales_are_kept_unless_named(files, tmp_path):
    source, output = files("everything"), tmp_path / "out.h5"
    found = json.loads(run("convert", source, output, "--to", "bf16", "--json"))
    kept = {d["dataset"]: d["kept"] for d in found["datasets"] if "kept" in d}
    assert kept == {"/scales/lat": "a dimension scale, not named",
                    "/scales/lon": "a dimension scale, not named"}
    run("convert", source, output, "--to", "bf16", "--only", "lat")
    with h5py.File(output) as file:
        assert fpconv.h5.format_of(file["scales/lat"]) == "bf16"
        assert file["scales/temperature"].dims[0][0] == file["scales/lat"]
        assert fpconv.h5.format_of(file["scales/lon"]) == "f64"


def test_virtual_datasets_keep_their_sources(tmp_path):
    source, output = tmp_path / "in.h5", tmp_path / "out.h5"
    with h5py.File(source, "w") as file:
        file["part"] = numpy.arange(64, dtype="f4")
        layout = h5py.VirtualLayout((64,), "f4")
        layout[:] = h5py.VirtualSource(".", "/part", (64,))
        file.create_virtual_dataset("all", layout)
    found = json.loads(run("convert", source, output, "--to", "mxfp4", "--json"))
    assert [d["kept"] for d in found["datasets"]] == ["virtual, it shows other datasets",
                                                      "a virtual dataset shows it"]
    run("convert", source, output, "--to", "f16")
    with h5py.File(output) as file:
        assert file["part"].dtype == "f2" and file["all"].is_virtual
        assert (file["all"][...] == numpy.arange(64)).all()


# ---------------------------------------------------------------------------
# What is chosen
# ---------------------------------------------------------------------------

ALL_TARGETS = [*fpconv.FORMATS, "e3m2_packed", "e2m3_packed", "e2m1_packed", *fpconv.SCHEMES]


@pytest.mark.parametrize("target", ALL_TARGETS)
def test_values_there_and_back(files, tmp_path, target):
    """Each value is the library's; attributes, shapes and all other things return."""
    source, output, wide = files("network"), tmp_path / "out.h5", tmp_path / "wide.h5"
    run("convert", source, output, "--to", target)
    run("back", output, wide, "--to", "f64")
    old, new = float_datasets(source), float_datasets(wide)
    assert old.keys() == new.keys() and len(old) == 8
    for name, values in old.items():
        wanted = converted(values, target)
        if target in fpconv.SCHEMES:  # the product is rounded once, to the wanted type
            wanted = fpconv.dequantize(fpconv.quantize(values, target), numpy.float64)
        assert new[name].dtype == ("f4" if target == "f32" else "f8") and numpy.array_equal(new[name], wanted), name
    with h5py.File(wide) as file:
        assert file["net/0/weight"].attrs["initialiser"] == "normal"
        assert file["net/index"].dtype == "i4"


@pytest.mark.parametrize("target", ["bf16", "e4m3", "e2m1_packed", "mxfp8_e4m3", "nvfp4",
                                    "tensor_e4m3", "row_e4m3", "column_e4m3", "pow2_row"])
def test_every_storage(files, tmp_path, target, monkeypatch):
    """Layouts, filters, byte orders, limits, fill values and special values."""
    source, output, wide = files("storage"), tmp_path / "out.h5", tmp_path / "wide.h5"
    monkeypatch.chdir(source.parent)
    run("convert", source, output, "--to", target)
    run("back", output, wide)
    old, new = float_datasets(source), float_datasets(wide)
    assert old.keys() == new.keys() and len(old) == 17
    for name, values in old.items():
        if (target in fpconv.SCHEMES or "packed" in target) and (values.ndim == 0 or values.size == 0):
            assert numpy.array_equal(values, new[name])
            continue
        native = values.astype(values.dtype.newbyteorder("="))
        wanted = converted(native if native.dtype == "f8" else native.astype("f4"), target).astype("f4")
        assert numpy.array_equal(new[name], wanted, equal_nan=True), name
    with h5py.File(source) as a, h5py.File(wide) as b:
        for name in ("chunked", "gzip", "lzf", "fletcher", "growing"):
            x, y = a["net"][name], b["net"][name]
            assert (x.compression, x.compression_opts, x.shuffle, x.fletcher32) == \
                (y.compression, y.compression_opts, y.shuffle, y.fletcher32), name
        assert b["net/growing"].maxshape == (None, 260)
        if "packed" not in target:
            assert b["net/contiguous"].chunks is None
        if target in ("bf16", "e4m3"):
            assert all(b["net"][name].chunks == a["net"][name].chunks for name in a["net"])
            assert b["net/growing"].fillvalue == 2.5 and b["net/sparse"].fillvalue == -1.5
            assert b["net/sparse"].id.get_num_chunks() == a["net/sparse"].id.get_num_chunks() == 1
            assert b["net/never_written"].id.get_storage_size() == 0
            assert b["net/never_written"].fillvalue == 0.25
        with h5py.File(output) as c:
            assert c["net"]["contiguous"].parent == c["net"]
            external = c["net/external"]
            if isinstance(external, h5py.Dataset):
                assert external.external is None


def test_external_file_is_not_written(files, tmp_path, monkeypatch):
    source = files("storage")
    monkeypatch.chdir(source.parent)
    before = (source.parent / "storage.h5.raw").read_bytes()
    run("convert", source, tmp_path / "out.h5", "--to", "bf16")
    run("convert", source, tmp_path / "kept.h5", "--to", "bf16", "--only", "/nothing")
    assert (source.parent / "storage.h5.raw").read_bytes() == before
    with h5py.File(tmp_path / "kept.h5") as file:
        assert file["net/external"].external is not None


def test_scaled_group_is_that_of_the_library(files, tmp_path):
    """The attributes and shapes of docs/scaled.md."""
    source, output = files("network"), tmp_path / "out.h5"
    run("convert", source, output, "--to", "mxfp4", "--scale", "ceil")
    with h5py.File(output) as file:
        group = file["net/0/weight"]
        attributes = {k: v for k, v in group.attrs.items()}
        assert attributes.pop("initialiser") == "normal"
        assert attributes.pop("shape").tolist() == [64, 96]
        assert attributes == {"fpconv_scaled_version": 1, "scheme": b"mx", "element": b"e2m1",
                              "scale_rule": b"ceil", "axis": 1, "block": 32}
        assert group["codes"].shape == (64, 48) and group["codes"].dtype == "u1"
        assert group["scales"].shape == (64, 3) and group["scales"].dtype == "u1"


def test_attributes_with_the_layouts_names_survive(tmp_path):
    source, output, wide = (tmp_path / n for n in ("in.h5", "out.h5", "wide.h5"))
    with h5py.File(source, "w") as file:
        file["w"] = numpy.ones((3, 40), "f4")
        file["w"].attrs.update({"shape": "mine", "axis": 7, "other": 1})
    run("convert", source, output, "--to", "mxfp4")
    run("back", output, wide)
    with h5py.File(wide) as file:
        assert dict(file["w"].attrs) == {"shape": "mine", "axis": 7, "other": 1}


def test_packed_is_packed_and_read_by_hdf5(files, tmp_path):
    """The n-bit filter, which HDF5 itself undoes: 4 bits a value."""
    source, output = files("network"), tmp_path / "out.h5"
    run("convert", source, output, "--to", "e2m1_packed")
    with h5py.File(output) as file, h5py.File(source) as old:
        packed = file["net/0/weight"]
        assert packed.id.get_storage_size() <= packed.size // 2 + 64
        codes = fpconv.encode(old["net/0/weight"][...], "e2m1")
        finite = (codes & 7) < 6  # HDF5 takes the largest exponent for Inf and NaN
        assert (packed[...][finite] == fpconv.decode(codes, "e2m1")[finite]).all()


def test_large_tensors_in_several_boxes(tmp_path):
    """Boxes end within rows, scales are those of the whole: long rows, and many."""
    source, output, wide = (tmp_path / n for n in ("in.h5", "out.h5", "wide.h5"))
    random = numpy.random.default_rng(5)
    shapes = {"long": (3, 700_000), "line": (1_500_007,), "many": (90_000, 17), "deep": (40, 90, 211),
              "chunks": (40, 90, 211)}
    with h5py.File(source, "w") as file:
        for name, shape in shapes.items():
            scale = 2.0 ** random.integers(-9, 9, shape[-1])
            file.create_dataset(name, data=(random.standard_normal(shape) * scale).astype("f4"),
                                chunks=(7, 50, 100) if name == "chunks" else None)
    for target in ("e5m2", "e3m2_packed", "mxfp8_e4m3", "mxfp6_e2m3", "nvfp4", "tensor_e4m3", "row_e2m1",
                   "column_e3m2", "pow2_row", "pow2_column"):
        run("convert", source, output, "--to", target, "-q")
        run("back", output, wide, "-q")
        with h5py.File(source) as a, h5py.File(wide) as b:
            for name in shapes:
                assert numpy.array_equal(b[name][...], converted(a[name][...], target)), (target, name)


def test_storage_options(files, tmp_path):
    source, output = files("network"), tmp_path / "out.h5"
    run("convert", source, output, "--to", "bf16", "--gzip", "6", "--shuffle", "--chunks", "4K")
    with h5py.File(output) as file, h5py.File(source) as old:
        weight = file["net/0/weight"]
        assert (weight.compression, weight.compression_opts, weight.shuffle) == ("gzip", 6, True)
        assert numpy.prod(weight.chunks) * 2 <= 4096 and weight.chunks[1] == 96
        kept = file["net/index"]
        assert kept.chunks is None and (kept[...] == old["net/index"][...]).all()
    run("convert", output, tmp_path / "flat.h5", "--to", "e4m3", "--contiguous")
    with h5py.File(tmp_path / "flat.h5") as file:
        assert file["net/0/weight"].chunks is None


def test_hdf5_decodes_what_was_compressed_outside_of_it(tmp_path):
    """Shuffle and deflate in threads of our own: HDF5 reads the result, masks and all."""
    source, output = tmp_path / "in.h5", tmp_path / "out.h5"
    values = numpy.random.default_rng(6).standard_normal((100, 130)).astype("f4")
    with h5py.File(source, "w") as file:
        data = file.create_dataset("w", data=values, chunks=(30, 40), compression="gzip", shuffle=True)
        raw = numpy.zeros((30, 40), "f4")
        raw[:, :40] = values[:30, :40]
        data.id.write_direct_chunk((0, 0), raw.tobytes(), 3)  # both filters left out
    run("convert", source, output, "--to", "f16")
    with h5py.File(output) as file:
        assert (file["w"][...] == values.astype("f2")).all()
        assert file["w"].compression == "gzip" and file["w"].shuffle


def test_losses_are_counted(tmp_path):
    source, output = tmp_path / "in.h5", tmp_path / "out.h5"
    with h5py.File(source, "w") as file:
        file["w"] = numpy.array([1, 448, 449, -1e6, numpy.inf, numpy.nan, 0], "f4")
        file["fine"] = numpy.array([1, 440], "f4")
    for target, beyond, nan in (("e4m3", 3, 0), ("bf16", 0, 0), ("e5m2", 1, 0), ("e2m1", 4, 1),
                                ("f16", 1, 0), ("hif8", 1, 0)):
        for policy in fpconv.POLICIES:
            found = json.loads(run("convert", source, output, "--to", target, "--json", "--policy", policy))
            entry = {d["dataset"]: d for d in found["datasets"]}["/w"]
            assert (entry["beyond_range"], entry["nan_lost"]) == (beyond, nan), (target, policy)
    found = json.loads(run("convert", source, output, "--to", "e4m3", "--json"))
    assert {d["dataset"]: d["beyond_range"] for d in found["datasets"]} == {"/w": 3, "/fine": 0}


@pytest.mark.parametrize("policy", fpconv.POLICIES)
def test_policies(tmp_path, policy):
    source, output, wide = (tmp_path / n for n in ("in.h5", "out.h5", "wide.h5"))
    values = numpy.array([0.3, 448, 480, 1e9, -1e9, numpy.inf, 0.3125 + 1 / 64], "f4")
    with h5py.File(source, "w") as file:
        file["w"] = values
    run("convert", source, output, "--to", "e4m3", "--policy", policy)
    run("back", output, wide, "--policy", policy)
    codes = fpconv.encode(values, "e4m3", policy=policy)
    with h5py.File(wide) as file:
        wanted = fpconv.decode(codes, "e4m3", policy=policy)
        assert numpy.array_equal(file["w"][...], wanted, equal_nan=True)


# ---------------------------------------------------------------------------
# Choosing
# ---------------------------------------------------------------------------


def chosen(source, output, *options) -> dict[str, str]:
    found = json.loads(run("convert", source, output, "--json", "--dry-run", *options))
    return {d["dataset"]: d["to"] for d in found["datasets"] if "to" in d}


def test_patterns_and_sizes(files, tmp_path):
    source, output = files("network"), tmp_path / "out.h5"
    weights = {f"/net/{i}/weight" for i in range(3)}
    assert chosen(source, output, "--to", "e4m3", "--only", "/net/*/weight").keys() == weights
    assert chosen(source, output, "--to", "e4m3", "--only", "weight", "--skip", "/net/1/**").keys() == \
        weights - {"/net/1/weight"}
    assert chosen(source, output, "--to", "e4m3", "--min-size", "16K").keys() == \
        {"/net/0/weight", "/net/1/weight"}
    assert not output.exists()


def test_map(files, tmp_path):
    source, output = files("network"), tmp_path / "out.h5"
    rules = tmp_path / "map.txt"
    rules.write_text("# first fit decides\n/net/0/* keep\nbias  f16 # all others\n*/weight mxfp4\n")
    assert chosen(source, output, "--map", rules) == {
        "/net/1/bias": "f16", "/net/2/bias": "f16", "/net/1/weight": "mxfp4", "/net/2/weight": "mxfp4"}
    assert chosen(source, output, "--map", rules, "--to", "bf16")["/net/conv"] == "bf16"
    rules.write_text("bias f16\n/net/** e9m9\n")
    assert "line 2" in errors("convert", source, output, "--map", rules, status=2)


@pytest.mark.parametrize("command", ["convert {} {} --to bf16 --dry-run", "back {} {} --dry-run",
                                     "inspect {}", "diff {0} {0}", "export {} {}"])
def test_patterns_that_fit_nothing(files, tmp_path, command):
    """Are named, as they may be misspelt."""
    line = command.format(files("network"), tmp_path / "out").split()
    said = errors(*line, "--only", "wieght", "--only", "weight", status=0)
    assert "fits the pattern 'wieght'" in said and "'weight'" not in said
    assert errors(*line, "--only", "wieght", "--only", "weight", "--quiet", status=0) == ""


def test_output_modes(files, tmp_path):
    source, output = files("network"), tmp_path / "out.h5"
    text = run("convert", source, output, "--to", "bf16")
    assert "/net/0/weight" in text and "bf16" in text and "KiB" in text
    assert run("convert", source, output, "--to", "bf16", "--quiet") == ""
    assert json.loads(run("convert", source, output, "--to", "bf16", "--json", "-q"))["output"] == str(output)


def test_scaled_groups_of_others(tmp_path):
    """Given scales are read as any; an attribute without a value is none."""
    values = numpy.random.default_rng(8).standard_normal((6, 40)).astype("f4")
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file["w"] = values
    run("convert", tmp_path / "in.h5", tmp_path / "out.h5", "--to", "mxfp4")
    with h5py.File(tmp_path / "out.h5", "r+") as file:
        file["w"].attrs["scale_rule"] = numpy.bytes_(b"given")
    run("back", tmp_path / "out.h5", tmp_path / "back.h5")
    with h5py.File(tmp_path / "back.h5") as file:
        numpy.testing.assert_array_equal(file["w"], converted(values, "mxfp4"))
    with h5py.File(tmp_path / "out.h5", "r+") as file:
        file["w"].attrs["fpconv_scaled_version"] = h5py.Empty("i4")
    assert "'fpconv_scaled_version' is empty" in errors("inspect", tmp_path / "out.h5", status=3)


@pytest.mark.parametrize("target", ["mxfp4", "mxfp8_e4m3", "nvfp4", "row_e2m1", "column_e3m2", "pow2_row"])
@pytest.mark.parametrize("shape", [(1,), (9,), (1, 1), (1, 9), (5, 31), (5, 33), (2, 3, 3)])
def test_chunks_narrower_than_a_block(tmp_path, target, shape):
    """There and back in chunks, of a tensor of fixed size and of one that can grow."""
    values = numpy.random.default_rng(9).standard_normal(shape).astype("f4")
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file["fixed"] = values
        file.create_dataset("grows", data=values, chunks=(1,) * len(shape), maxshape=(None,) * len(shape))
    run("convert", tmp_path / "in.h5", tmp_path / "out.h5", "--to", target, "--gzip", "4")
    run("back", tmp_path / "out.h5", tmp_path / "back.h5")
    with h5py.File(tmp_path / "back.h5") as file:
        for dataset in file.values():
            numpy.testing.assert_array_equal(dataset, converted(values, target))
            assert dataset.chunks
        assert file["fixed"].maxshape == shape and file["grows"].maxshape == (None,) * len(shape)


@pytest.mark.parametrize("options", ["--contiguous --gzip 4", "--contiguous --shuffle", "--chunks 0"])
def test_storage_that_cannot_be(tmp_path, options):
    for command in (["convert", "--to", "bf16"], ["back"]):
        errors(*command, "in.h5", tmp_path / "out.h5", *options.split(), status=2)
