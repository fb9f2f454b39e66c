#!/usr/bin/env python3
"""Real client programs with libfpconv-hdf5-preload.so: h5py, h5dump, h5ls, h5diff, h5repack

SPDX-License-Identifier: MIT

    test_clients.py PRELOAD PLUGIN DOCTOR      prints its results in the TAP format

Values are compared with exact rational arithmetic; stored codes are looked at
without conversion.  Exits with 77 if h5py or a tool is not installed.
"""
import bisect
import ctypes
import fractions
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile

try:
    import h5py
    import numpy
    from h5py import h5d, h5s
except ImportError:
    sys.exit(77)

SCRIPT = os.path.abspath(__file__)
sys.path.append(os.path.join(os.path.dirname(SCRIPT), "python"))
import exact
from datatypes import datatype

TOOLS = ("h5dump", "h5ls", "h5diff", "h5repack")

# A profile's rule in exact.py's words; `repaired` is HDF5's rule for all formats here.
POLICIES = {"repaired": "hdf5", "ocp": "ocp", "ocp_sat": "ocp_sat"}


def decode(name, code, profile):
    return exact.decode(name, code, POLICIES[profile])


def encode(name, value, profile):
    return exact.encode(name, value, POLICIES[profile])


def is_tie(name, value):
    magnitude, table = abs(fractions.Fraction(value)), exact.MAGNITUDES[name]
    low = bisect.bisect_right(table, magnitude) - 1
    return low + 1 < len(table) and 2 * magnitude == table[low] + table[low + 1]


def test_values(name):
    """float32; for f16 no ties and no overflow, where HDF5's versions differ."""
    random = numpy.random.default_rng(7)
    named = [0.75, 7.98, 15.7, 0.3, 448, 480, 500, 1e9, -0.0, -0.75, 2.5, 3.5, 5, 7.25, 1e-5, 0.0625]
    values = numpy.concatenate([named, random.standard_normal(200),
                                random.standard_normal(100) * 2.0 ** random.integers(-14, 9, 100)])
    values = [float(v) for v in values.astype("f4")]
    if name == "f16":
        values = [v for v in values if abs(v) < 65000 and not is_tie(name, v)]
    return numpy.array(values, "f4")


# ---------------------------------------------------------------------------
# Files
# ---------------------------------------------------------------------------


def all_codes(name):
    count = 2 * exact.sign_bit(name)
    return numpy.arange(count).astype("<u2" if count > 256 else "u1")


def write_codes(path, name, codes):
    """The same type on both sides: nothing is converted."""
    with h5py.File(path, "a") as file:
        data = h5d.create(file.id, name.encode(), datatype(name), h5s.create_simple(codes.shape))
        data.write(h5s.ALL, h5s.ALL, codes, mtype=datatype(name))


def read_codes(path, name):
    with h5py.File(path, "r") as file:
        data = file[name]
        codes = numpy.zeros(data.shape, all_codes(name).dtype)
        data.id.read(h5s.ALL, h5s.ALL, codes, mtype=datatype(name))
        return codes


def child_write(path):
    with h5py.File(path, "w") as file:
        for name in exact.FIELDS:
            values = test_values(name)
            data = h5d.create(file.id, name.encode(), datatype(name),
                              h5s.create_simple(values.shape))
            data.write(h5s.ALL, h5s.ALL, values)


def child_read(path):
    with h5py.File(path, "r") as file:
        print(json.dumps({name: [float(v).hex() for v in file[name][...]] for name in file}))


def child_ctypes(path, plugin):
    library = ctypes.CDLL(plugin)
    library.fpconv_h5_last_error.restype = ctypes.c_char_p
    if library.fpconv_h5_register() < 0:
        sys.exit(library.fpconv_h5_last_error().decode())
    child_write(path)


# ---------------------------------------------------------------------------
# Checks
# ---------------------------------------------------------------------------


def same(a, b):
    return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))


def distance(a, b):
    return abs(fractions.Fraction(a) - fractions.Fraction(b))


class Clients:
    def __init__(self, preload, plugin, doctor):
        self.preload, self.plugin, self.doctor = preload, plugin, doctor
        self.number, self.failed = 0, 0

    def run(self, command, profile=None, status=0, **more):
        """Output and errors; with the preload library if a profile is named."""
        env = dict(os.environ, ASAN_OPTIONS="detect_leaks=0")
        sanitizer = env.pop("FPCONV_TEST_SANITIZER", "")
        libraries = [sanitizer] if sanitizer else []
        if profile is not None:
            libraries.append(self.preload)
            env["FPCONV_H5_PROFILE"] = profile
        if libraries:
            env["LD_PRELOAD"] = ":".join(libraries)
        done = subprocess.run(command, env=env, text=True, capture_output=True, timeout=120)
        if done.returncode != status:
            raise AssertionError(f"{command[:3]} ended with {done.returncode}: {done.stderr[-800:]}")
        return done.stdout, done.stderr

    def child(self, profile, *arguments):
        return self.run([sys.executable, SCRIPT, "--child", *arguments], profile)[0]

    def check(self, what, function):
        self.number += 1
        try:
            function()
            print(f"ok {self.number} - {what}", flush=True)
        except Exception as error:  # whatever it is, the other checks still run
            self.failed += 1
            print(f"not ok {self.number} - {what}\n# {type(error).__name__}: {error}", flush=True)

    # h5py

    def h5py_writes(self, profile):
        self.child(profile, "write", "written.h5")
        self.assert_written("written.h5", profile)

    @staticmethod
    def assert_written(path, profile):
        for name in exact.FIELDS:
            for value, code in zip(test_values(name), read_codes(path, name)):
                wanted = encode(name, float(value), profile)
                assert code == wanted, f"{name}: {value!r} is {code:#x} and not {wanted:#x}"

    def h5py_writes_identical(self):
        self.child(None, "write", "plain.h5")
        self.child("identical", "write", "identical.h5")
        for name in exact.FIELDS:
            assert (read_codes("plain.h5", name) == read_codes("identical.h5", name)).all(), name

    def library_alone_differs(self):
        """Else the checks of `repaired` would show nothing."""
        self.child(None, "write", "plain.h5")
        stored = read_codes("plain.h5", "e2m1")[0]
        assert stored == 1, f"HDF5 alone stores 0.75 as {stored:#x}: is its lost carry mended?"

    def h5py_reads(self, profile):
        read = json.loads(self.child(profile, "read", "codes.h5"))
        for name in exact.FIELDS:
            for code, text in zip(all_codes(name), read[name]):
                got, wanted = float.fromhex(text), decode(name, int(code), profile)
                assert same(got, wanted), f"{name}: {code:#x} is {got} and not {wanted}"

    def ctypes_registers(self):
        self.child(None, "ctypes", "ctypes.h5", self.plugin)
        self.assert_written("ctypes.h5", "repaired")

    # HDF5's tools

    def assert_printed(self, words, name, digits):
        values = [float(word.replace("-nan", "nan")) for word in words]
        wanted = [float(f"{decode(name, int(code), 'ocp'):.{digits}g}") for code in all_codes(name)]
        assert len(values) == len(wanted), f"{name}: {len(values)} values"
        for code, (got, want) in enumerate(zip(values, wanted)):
            assert got == want or (math.isnan(got) and math.isnan(want)), \
                f"{name}: {code:#x} is {got} and not {want}"

    def h5dump(self):
        for name in ("e5m2", "e4m3", "e3m2", "e2m3", "e2m1"):
            text, _ = self.run(["h5dump", "-y", "-m", "%.17g", "-d", name, "codes.h5"], "ocp")
            words = text[text.index("DATA {") + 6:].split("}")[0].replace(",", " ").split()
            self.assert_printed(words, name, 17)

    def h5ls(self):
        for name in ("e4m3", "e2m1"):
            text, _ = self.run(["h5ls", "-S", "-d", f"codes.h5/{name}"], "ocp")
            words = text[text.index("Data:") + 5:].split()
            self.assert_printed(words, name, 6)

    def h5diff(self):
        for name in ("e4m3", "e3m2", "e2m1"):
            self.run(["h5diff", "codes.h5", "floats.h5", name], "ocp")
        # 448 and others: HDF5 alone reads them as NaN or Inf
        self.run(["h5diff", "codes.h5", "floats.h5", "e4m3"], None, status=1)

    def h5repack(self):
        self.run(["h5repack", "-f", "GZIP=4", "codes.h5", "packed.h5"], "ocp")
        for name in exact.FIELDS:
            assert (read_codes("packed.h5", name) == all_codes(name)).all(), name
        with h5py.File("packed.h5", "r") as file:
            assert file["bf16"].compression == "gzip"
        # In the machine's types, which the tool converts to; 1.14's is f16 for all of 16 bits
        # and less.  HDF5 alone makes Inf of 4 in e2m1.
        self.run(["h5repack", "-n", "-f", "GZIP=4", "codes.h5", "native.h5"], "ocp")
        read = json.loads(self.child(None, "read", "native.h5"))
        for name in ("e5m2", "e4m3", "e3m2", "e2m3", "e2m1"):
            for code, text in zip(all_codes(name), read[name]):
                got, wanted = float.fromhex(text), decode(name, int(code), "ocp")
                assert same(got, wanted), f"{name}: {code:#x} is {got} and not {wanted}"

    # fpconv-doctor

    def examine(self, *files, status):
        return json.loads(self.run([self.doctor, "--json", *files], status=status)[0])

    def doctor_reads(self):
        """Wrongly read are the codes that HDF5 takes for Inf or NaN and the formats do not."""
        found = {e["format"]: e for e in self.examine(status=1)["formats"]}
        assert set(found) == set(exact.FIELDS), set(found)
        for name, entry in found.items():
            wrong = sum(not same(decode(name, int(c), "repaired"), decode(name, int(c), "ocp"))
                        and not math.isnan(decode(name, int(c), "ocp")) for c in all_codes(name))
            assert entry["read"]["wrong"] == wrong, (name, entry["read"], wrong)
            profiles = entry["profiles"]
            assert profiles["ocp"]["read"]["wrong"] == 0, name
            assert profiles["ocp"]["sample"]["wrong"] == 0, name
            assert profiles["identical"]["changed_percent"] == 0, name
            assert profiles["repaired"]["changed_percent"] == 0 or entry["sample"]["wrong"], name
        assert found["e2m1"]["sample"]["wrong_percent"] > 3

    def doctor_stores(self):
        """Against the codes that h5py stores, judged by exact arithmetic."""
        self.child(None, "write", "plain.h5")
        with h5py.File("values.h5", "w") as file:
            for name in exact.FIELDS:
                file[name] = test_values(name)
        datasets = {d["path"]: d for d in self.examine("values.h5", status=1)["datasets"]}
        for name in exact.FIELDS:
            wrong = 0
            for value, code in zip(map(float, test_values(name)), read_codes("plain.h5", name)):
                stored = decode(name, int(code), "ocp")
                largest = exact.MAGNITUDES[name][exact.largest_code(name, "ocp")]
                best = decode(name, encode(name, value, "ocp_sat"), "ocp")
                if not math.isfinite(decode(name, encode(name, value, "ocp"), "ocp")) or \
                        fractions.Fraction(abs(value)) > largest:
                    wrong += math.isfinite(stored) and abs(stored) != abs(best)
                else:
                    wrong += not math.isfinite(stored) or distance(stored, value) > distance(best, value)
            got = datasets[name]["formats"][name]["wrong"]
            assert got == wrong, f"{name}: {got} of {datasets[name]} and not {wrong}"

    def doctor_files(self):
        self.examine("codes.h5", status=1)
        write_codes("sound.h5", "e5m2", all_codes("e5m2")[:124])
        assert self.examine("sound.h5", status=0)["wrong"] is False
        for path in (self.doctor, "missing.h5"):
            _, errors = self.run([self.doctor, path], status=2)
            assert errors.count("\n") == 1 and path in errors, errors
        text, _ = self.run([self.doctor], status=1)
        assert "a carry was lost" in text and "largest exponent" in text, text

    def doctor_words(self):
        """The same figures as in JSON, of the library, of each profile and of files."""
        text, _ = self.run([self.doctor, "codes.h5", "values.h5"], status=1)
        found = self.examine("codes.h5", "values.h5", status=1)
        words = text.split("\n\n")
        assert words[0].startswith(f"HDF5 {found['hdf5']}"), words[0]
        assert len(words) == 1 + len(found["formats"]) + len(found["datasets"]), text
        for entry, word in zip(found["formats"], words[1:]):
            assert word.startswith(entry["format"] + " (largest"), word
            self.assert_words(word, "stores {} of a standard normal sample wrongly", entry["sample"])
            assert f"reads {entry['read']['wrong']} of" in word, word
            for profile, of_profile in entry["profiles"].items():
                line = next(line for line in word.split("\n") if f"with {profile} " in line)
                assert f" {of_profile['changed_percent']:.3g} % of the sample would change" in line, line
                assert f" {of_profile['read']['wrong']} codes" in line, line
        for entry, word in zip(found["datasets"], words[1 + len(found["formats"]):]):
            assert word.startswith(f"{entry['file']}: {entry['path']} ("), word
            for name, of_format in entry["formats"].items():
                of_what = f"{{}} of its {of_format['values']} values"
                self.assert_words(word, f"{of_what} are read wrongly" if entry["judged"] == "read" else
                                  f"as {name:4} {of_what} would be stored wrongly", of_format)

    @staticmethod
    def assert_words(text, words, finding):
        """The share of wrong values, and one of them if there are any."""
        line = next((line for line in text.split("\n")
                     if words.format(f"{finding['wrong_percent']:.3g} %") in line), None)
        assert line is not None, f"{words} {finding}: {text}"
        assert (f"wrongly: {float(finding['example']['value']):.9g} as" in line) if finding["wrong"] \
            else line.endswith("wrongly"), line

    # Manners

    def no_hdf5(self):
        for command in (["true"], [sys.executable, "-c", "print(1)"]):
            out, errors = self.run(command, "ocp")
            assert errors == "", errors

    def unknown_profile(self):
        _, errors = self.run(["h5dump", "-d", "e2m1", "codes.h5"], "best")
        assert errors.count("FPCONV_H5_PROFILE") == 1 and "best" in errors, errors
        _, errors = self.run(["h5dump", "-d", "e2m1", "codes.h5"], "")
        assert errors == "", errors

    def test(self):
        for name in exact.FIELDS:
            write_codes("codes.h5", name, all_codes(name))
        with h5py.File("floats.h5", "w") as file:
            for name in exact.FIELDS:
                file[name] = numpy.array([decode(name, int(c), "ocp") for c in all_codes(name)], "f4")
        # These two (1.10.8) hang under AddressSanitizer's library alone, without us
        hanging = [("h5ls", self.h5ls), ("h5repack", self.h5repack)]
        if os.environ.get("FPCONV_TEST_SANITIZER"):
            hanging = []
        checks = [("HDF5 alone differs", self.library_alone_differs),
                  *((f"h5py writes, {p}", lambda p=p: self.h5py_writes(p))
                    for p in ("repaired", "ocp", "ocp_sat")),
                  ("h5py writes, identical", self.h5py_writes_identical),
                  *((f"h5py reads, {p}", lambda p=p: self.h5py_reads(p)) for p in ("repaired", "ocp")),
                  ("h5py with ctypes", self.ctypes_registers),
                  ("h5dump", self.h5dump), ("h5diff", self.h5diff), *hanging,
                  ("fpconv-doctor, codes", self.doctor_reads),
                  ("fpconv-doctor, values", self.doctor_stores),
                  ("fpconv-doctor, files", self.doctor_files),
                  ("fpconv-doctor, words", self.doctor_words),
                  ("programs without HDF5", self.no_hdf5),
                  ("unknown profile", self.unknown_profile)]
        print(f"1..{len(checks)}")
        for what, function in checks:
            self.check(what, function)
        return self.failed > 0


def main(arguments):
    if arguments[0] == "--child":
        {"write": child_write, "read": child_read, "ctypes": child_ctypes}[arguments[1]](*arguments[2:])
        return 0
    if not all(shutil.which(tool) for tool in TOOLS):
        return 77
    paths = list(map(os.path.abspath, arguments))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        return Clients(*paths).test()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
