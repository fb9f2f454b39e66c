"""Files as real writers make them, for the tests of the command.

SPDX-License-Identifier: MIT

Each function writes a file at a path.  The float datasets that a conversion is
about lie under /net; the rest is there to be carried over.
"""
import os
import subprocess

import h5py
import numpy
from h5py import h5d, h5f, h5p, h5s, h5t


def network(path: str) -> None:
    """A small network: weights and biases of several shapes, attributes, an index."""
    random = numpy.random.default_rng(11)
    with h5py.File(path, "w") as file:
        for i, (inputs, outputs) in enumerate([(96, 64), (64, 64), (64, 10)]):
            layer = file.create_group(f"net/{i}")
            layer["weight"] = (random.standard_normal((outputs, inputs)) / 8).astype("f4")
            layer["bias"] = random.standard_normal(outputs).astype("f4") / 100
            layer["weight"].attrs["initialiser"] = "normal"
        file["net/conv"] = (random.standard_normal((16, 3, 5, 7)) * 3).astype("f4")
        file["net/double"] = random.standard_normal((33, 17))
        file["net/index"] = numpy.arange(40, dtype="i4").reshape(5, 8)


def storage(path: str) -> None:
    """Float datasets in every layout, with filters, fill values and limits."""
    random = numpy.random.default_rng(12)
    values = random.standard_normal((70, 130)).astype("f4")
    with h5py.File(path, "w") as file:
        net = file.create_group("net")
        net["contiguous"] = numpy.tile(values, (3, 1))
        net.create_dataset("chunked", data=values, chunks=(16, 32))
        net.create_dataset("gzip", data=values, chunks=(16, 32), compression="gzip", shuffle=True)
        net.create_dataset("lzf", data=values, chunks=(32, 130), compression="lzf")
        net.create_dataset("fletcher", data=values, chunks=(7, 9), fletcher32=True)
        net.create_dataset("scaleoffset", data=values, chunks=(16, 32), scaleoffset=3)
        net.create_dataset("growing", data=values, chunks=(8, 64), maxshape=(None, 260), fillvalue=2.5)
        sparse = net.create_dataset("sparse", (1000, 1000), "f4", chunks=(100, 100), fillvalue=-1.5)
        sparse[250:260, 250:260] = 7
        net.create_dataset("never_written", (300, 300), "f4", fillvalue=0.25)
        net["big_endian"] = values.astype(">f4")
        net["double"] = values.astype("f8") * 1e3
        net["half"] = values.astype("f2")
        net["scalar"] = numpy.float32(3.25)
        net["empty"] = numpy.zeros((0, 5), "f4")
        net["null"] = h5py.Empty("f4")
        net["specials"] = numpy.array([0, -0.0, numpy.inf, -numpy.inf, numpy.nan, 1e30, -1e30, 1e-40, 448, 500], "f4")
        compact(net, b"compact", values[:3, :8])
        external(net, b"external", values, os.path.basename(path) + ".raw")


def compact(group: h5py.Group, name: bytes, values: numpy.ndarray) -> None:
    properties = h5p.create(h5p.DATASET_CREATE)
    properties.set_layout(h5d.COMPACT)
    values = numpy.ascontiguousarray(values)
    dataset = h5d.create(group.id, name, h5t.IEEE_F32LE, h5s.create_simple(values.shape), properties)
    dataset.write(h5s.ALL, h5s.ALL, values)


def external(group: h5py.Group, name: bytes, values: numpy.ndarray, file: str) -> None:
    properties = h5p.create(h5p.DATASET_CREATE)
    properties.set_external(file.encode(), 0, values.nbytes)
    dataset = h5d.create(group.id, name, h5t.IEEE_F32LE, h5s.create_simple(values.shape), properties)
    dataset.write(h5s.ALL, h5s.ALL, values)


def everything(path: str, libver: str | tuple[str, str] | None = None, **options) -> None:
    """All of HDF5 that h5py can write, around two float datasets."""
    random = numpy.random.default_rng(13)
    with h5py.File(path, "w", libver=libver, **options) as file:
        net = file.create_group("net", track_order=True)
        for name in ("zeta", "alpha", "mid"):  # not alphabetical: the order is kept
            net[name] = random.standard_normal((12, 20)).astype("f4")
        net["alpha"].attrs["units"] = "m/s"
        add_types(file.create_group("types"))
        add_links(file)
        add_attributes(file.create_dataset("attributes", data=numpy.arange(3)), file)
        add_references(file)
        add_scales(file)
        add_virtual(file)
        add_committed(file)


def add_types(group: h5py.Group) -> None:
    """Datasets of every kind of datatype."""
    for code in ("i1", "u1", "<i2", ">i4", "u8", "?", "c8", "c16", "<f8", ">f4", "S7", "V5"):
        group["d_" + code.strip("<>?").ljust(1, "b") + ("be" if ">" in code else "")] = \
            numpy.arange(6).astype("V5" if code == "V5" else code) if code != "V5" else \
            numpy.array([b"abcde", b"\0\1\2\3\4"], "V5")
    group["text"] = ["one", "zw\u00f6lf", ""]
    group.create_dataset("ascii", data=[b"x", b"yy"], dtype=h5py.string_dtype("ascii"))
    group.create_dataset("fixed", data=[b"abc", b"de"], dtype=h5py.string_dtype("utf-8", 8))
    colours = h5py.enum_dtype({"RED": 0, "GREEN": 1, "BLUE": 42}, "i2")
    group.create_dataset("enum", data=[0, 1, 42], dtype=colours)
    group.create_dataset("compound", data=numpy.array(
        [(1, 2.5, b"ab", [1, 2, 3])], [("a", "i4"), ("b", ">f8"), ("s", "S4"), ("v", "f4", (3,))]))
    group.create_dataset("array", data=numpy.zeros(2, [("m", "f4", (2, 3))]))
    ragged = group.create_dataset("ragged", (3,), h5py.vlen_dtype("f4"), chunks=(2,))
    ragged[0], ragged[2] = [1, 2, 3], [4.5]
    group.create_dataset("opaque", data=numpy.array([b"1234", b"5678"], h5py.opaque_dtype("V4")))
    group.create_dataset("time", data=numpy.array(["2026-11-30"], "M8[D]").astype(
        h5py.opaque_dtype("M8[D]")))
    group.create_dataset("scalar_text", data="a scalar")
    group.create_dataset("nothing", data=h5py.Empty("i8"))
    bitfield = h5d.create(group.id, b"bitfield", h5t.STD_B16LE, h5s.create_simple((4,)))
    bitfield.write(h5s.ALL, h5s.ALL, numpy.arange(4, dtype="u2"), mtype=h5t.STD_B16LE)


def add_links(file: h5py.File) -> None:
    links = file.create_group("links")
    links["hard"] = file["net/alpha"]
    links["cycle"] = file["/"]
    links["self"] = links
    links["soft"] = h5py.SoftLink("/net/mid")
    links["dangling"] = h5py.SoftLink("/no/such/thing")
    links["external"] = h5py.ExternalLink("elsewhere.h5", "/data")
    links["gr\u00fcn"] = 5
    deep = links
    for i in range(40):
        deep = deep.create_group(f"level{i}")
    deep["value"] = i


def add_attributes(dataset: h5py.Dataset, file: h5py.File) -> None:
    attributes = dataset.attrs
    attributes["text"] = "variable"
    attributes["fixed"] = numpy.bytes_("fixed")
    attributes["list"] = ["a", "bb", "ccc"]
    attributes["matrix"] = numpy.arange(6.0).reshape(2, 3)
    attributes["empty"] = h5py.Empty("f4")
    attributes["flag"] = True
    attributes["pair"] = numpy.array((3, 2.5), [("n", "i4"), ("x", "f4")])
    attributes["ragged"] = numpy.array([numpy.arange(3), numpy.arange(1)], dtype=object).astype(
        h5py.vlen_dtype("i4"))
    ordered = file.create_dataset("ordered", data=1, track_order=True)
    for name in "zyxabc":
        ordered.attrs[name] = name
    many = file.create_group("many", track_order=True)  # more than fit into the header
    for i in reversed(range(50)):
        many.attrs[f"a{i}"] = numpy.arange(i)


def add_references(file: h5py.File) -> None:
    """Object and region references in datasets and attributes, plain and nested."""
    group = file.create_group("references")
    alpha, mid = file["net/alpha"], file["net/mid"]
    regions = [alpha.regionref[2:5, 3:9], mid.regionref[0, :]]
    group.create_dataset("objects", data=[alpha.ref, file["links"].ref, mid.ref], dtype=h5py.ref_dtype)
    unset = group.create_dataset("unset", (3,), h5py.ref_dtype, chunks=(1,))
    unset[1] = group.ref
    group.create_dataset("regions", data=regions, dtype=h5py.regionref_dtype)
    group.attrs["object"] = alpha.ref
    group.attrs["region"] = regions[0]
    group.attrs.create("two", [mid.ref, group.ref], dtype=h5py.ref_dtype)
    kind = numpy.dtype([("n", "i4"), ("where", h5py.ref_dtype), ("part", h5py.regionref_dtype)])
    table = numpy.zeros(2, kind)
    table[0], table[1] = (7, alpha.ref, regions[0]), (8, group.ref, regions[1])
    group.create_dataset("table", data=table)
    lists = group.create_dataset("lists", (2,), h5py.vlen_dtype(h5py.ref_dtype))
    lists[0] = numpy.array([alpha.ref, mid.ref, group.ref], h5py.ref_dtype)


def add_scales(file: h5py.File) -> None:
    """Dimension scales, which are object references both ways."""
    group = file.create_group("scales")
    group["temperature"] = numpy.arange(24, dtype="i2").reshape(4, 6)
    group["lat"], group["lon"] = numpy.linspace(-90, 90, 4), numpy.linspace(0, 360, 6)
    for i, name in enumerate(("lat", "lon")):
        group[name].make_scale(name)
        group["temperature"].dims[i].attach_scale(group[name])
        group["temperature"].dims[i].label = name


def add_virtual(file: h5py.File) -> None:
    group = file.create_group("virtual")
    group["part"] = numpy.arange(8, dtype="i4")
    layout = h5py.VirtualLayout((2, 8), "i4")
    layout[0] = h5py.VirtualSource(".", "/virtual/part", (8,))
    layout[1] = h5py.VirtualSource("elsewhere.h5", "/data", (8,))
    group.create_virtual_dataset("all", layout, fillvalue=-1)


def add_committed(file: h5py.File) -> None:
    """Committed datatypes, used by datasets and attributes before and after them."""
    group = file.create_group("a_user")
    file["types/z_point"] = numpy.dtype([("x", "f4"), ("y", "f4")])
    file["types/z_number"] = numpy.dtype("i4")
    point, number = file["types/z_point"], file["types/z_number"]
    point.attrs["about"] = "a committed type has attributes, too"
    group.create_dataset("points", data=numpy.zeros(3, point.dtype), dtype=point)
    group.create_dataset("chunks", (40,), number, chunks=(7,), compression="gzip")[:] = numpy.arange(40)
    group.attrs.create("number", 5, dtype=number)
    anonymous = numpy.dtype([("gone", "i8")])
    group["dropped"] = anonymous
    group.create_dataset("orphan", data=numpy.zeros(2, anonymous), dtype=group["dropped"])
    del group["dropped"]


def with_user_block(path: str) -> None:
    everything(path, userblock_size=1024)
    with open(path, "r+b") as file:
        file.write(b"not HDF5's own\n" * 30)


def paged(path: str) -> None:
    """With a file-space strategy of its own."""
    everything(path, libver="latest", fs_strategy="page", fs_persist=True, fs_page_size=4096)


# ---------------------------------------------------------------------------
# Other writers
# ---------------------------------------------------------------------------

NETCDF = """netcdf specimen {
types:
  byte enum sky {clear = 0, cloudy = 1};
  compound station { int id; float height; };
  float(*) series;
dimensions: time = UNLIMITED; lat = 3; lon = 4;
variables:
  float lat(lat); lat:units = "degrees_north";
  float lon(lon);
  double time(time);
  float temperature(time, lat, lon);
    temperature:_FillValue = -999.f; temperature:_DeflateLevel = 3; temperature:_Shuffle = "true";
  sky weather(time);
  station where(lat);
  series history(lat);
  string names(lat);
:title = "a specimen";
data:
  lat = -30, 0, 30; lon = 0, 90, 180, 270; time = 1, 2;
  temperature = 1.5, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12,
    -1, -2, -3, _, -5, -6, -7, -8, -9, -10, -11, -12.25;
  weather = clear, cloudy;
  where = {1, 1.5}, {2, 2.5}, {3, 3.5};
  history = {1, 2, 3}, {4}, {};
  names = "a", "bb", "ccc";
group: inner {
dimensions: k = 2;
variables: float net(lat, k);
data: net = 1, 2, 3, 4, 5, 6; }
}
"""


def netcdf(path: str) -> None:
    """netCDF-4's own writer, by ncgen."""
    source = path + ".cdl"
    with open(source, "w", encoding="ascii") as file:
        file.write(NETCDF)
    subprocess.run(["ncgen", "-4", "-o", path, source], check=True, timeout=60)


def h5import(path: str) -> None:
    """Text and binary input of h5import."""
    values = numpy.random.default_rng(14).standard_normal((20, 30)).astype("f4")
    numpy.savetxt(path + ".txt", values)
    values.tofile(path + ".bin")
    subprocess.run(["h5import", path + ".txt", "-d", "20,30", "-p", "/net/text", "-t", "TEXTFP",
                    "-s", "32", path + ".bin", "-d", "20,30", "-p", "/net/binary", "-t", "FP",
                    "-s", "32", "-o", path], check=True, timeout=60, stdout=subprocess.DEVNULL)


def pytables(path: str) -> None:
    """PyTables: tables, arrays that grow, blosc, pickled attributes, strings."""
    import tables
    random = numpy.random.default_rng(15)
    with tables.open_file(path, "w", title="specimen") as file:
        net = file.create_group("/", "net")
        file.create_array(net, "weight", random.standard_normal((30, 40)).astype("f4"))
        packed = tables.Filters(complevel=5, complib="zlib", shuffle=True, fletcher32=True)
        file.create_carray(net, "packed", obj=random.standard_normal((50, 64)).astype("f4"), filters=packed)
        file.create_carray(net, "blosc", obj=random.standard_normal((50, 64)).astype("f4"),
                           filters=tables.Filters(complevel=5, complib="blosc"))
        growing = file.create_earray(net, "growing", tables.Float32Atom(), (0, 8), expectedrows=100)
        growing.append(random.standard_normal((25, 8)).astype("f4"))
        table = file.create_table("/", "table", numpy.dtype([("n", "i4"), ("x", "f8"), ("s", "S5")]))
        table.append([(i, i / 3, b"row") for i in range(10)])
        table.cols.n.create_index()
        ragged = file.create_vlarray("/", "ragged", tables.ObjectAtom())
        ragged.append({"a": [1, 2]})
        file.root._v_attrs.settings = {"rate": 0.1}
