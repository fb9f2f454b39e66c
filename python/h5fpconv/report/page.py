"""The report page: one HTML file with its style, its script and its data inside.

SPDX-License-Identifier: MIT

page.html is the frame (jinja2), page.css the style, page.js draws the data.  The data
are those of `inspect --json`, as short arrays, rounded, and bounded: a page of a file
with very many datasets stays one that a phone can show.
"""
import json
import math
import os
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

DETAILS = 1000  # datasets, the largest ones, whose charts and results are in the page
LINES = 10000  # datasets, the largest ones, that are listed
DIGITS = 4  # significant ones of errors and shares


def render(inspection: Mapping[str, Any]) -> str:
    """The page of what `h5fpconv inspect --json` prints."""
    import jinja2  # loaded only where a page is asked for

    files = resources.files(__package__)
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined,
                                     trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(files.joinpath("page.html").read_text("utf-8"))
    whole = inspection["whole_file"]
    return template.render(
        file=printable(os.path.basename(inspection["file"])),
        inspection=inspection, whole=whole,
        style=files.joinpath("page.css").read_text("utf-8"),
        script=files.joinpath("page.js").read_text("utf-8"),
        data=as_script(page_data(inspection)))


def printable(text: str) -> str:
    """The text with what cannot be written in UTF-8 replaced."""
    return text.encode("utf-8", "replace").decode()


def as_script(value: Any) -> str:
    """JSON that is safe between <script> and </script>, whatever names it has."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def short(value: float | None) -> float | int | None:
    """The value with DIGITS digits; None for what is not finite."""
    if value is None or not math.isfinite(value):
        return None
    rounded = float(f"{value:.{DIGITS}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded


def result_data(result: Mapping[str, Any] | None) -> list[Any] | None:
    """bits, bytes, SQNR ("exact", or null without a finite value), worst relative error,
    shares of overflow and underflow, values lost."""
    if result is None:
        return None
    return [short(result["bits"]), result["bytes"],
            "exact" if result["exact"] else short(result["sqnr_db"]),
            short(result["worst_relative_error"]), short(result["overflow"]),
            short(result["underflow"]),
            result["finite_to_nonfinite"] + result["nonfinite_changed"]]


def results_data(results: Mapping[str, Any], targets: Sequence[Mapping[str, Any]]) -> list[Any]:
    """The results in the order of the targets; null for one that is not possible."""
    return [result_data(results.get(target["name"])) for target in targets]


def dataset_data(dataset: Mapping[str, Any], targets: Sequence[Mapping[str, Any]],
                 has_details: bool) -> dict[str, Any]:
    """One line of the list of datasets, and what is shown when it is chosen."""
    chosen = dataset["recommendation"]
    best = dataset["results"].get(chosen["target"]) if chosen else None
    line = {
        "name": printable(dataset["name"]),
        "shape": dataset["shape"],
        "stored": dataset["stored"],
        "bytes": dataset["bytes"],
        "bits": short(dataset["bits"]),
        "values": dataset["values"],
        "seen": dataset["values_looked_at"],
        "range": [short(dataset[key]) for key in ("minimum", "maximum", "smallest_magnitude")],
        "shares": [short(dataset[key]) for key in ("zeros", "subnormals", "nan", "inf")],
        "recommendation": chosen,
        "best": result_data(best),
    }
    if has_details:
        line["exponents"] = dataset["exponents"]
        line["results"] = results_data(dataset["results"], targets)
        line["impossible"] = dataset["impossible"]
    return line


def page_data(inspection: Mapping[str, Any]) -> dict[str, Any]:
    """What page.js draws."""
    targets = inspection["targets"]
    datasets = inspection["datasets"]
    by_size = sorted(range(len(datasets)), key=lambda i: -datasets[i]["bytes"])
    detailed = set(by_size[:DETAILS])
    listed = sorted(by_size[:LINES])
    whole = inspection["whole_file"]
    return {
        "targets": targets,
        "formats": inspection["formats"],
        "budget": inspection["budget"],
        "whole": {
            "values": whole["values"], "bytes": whole["bytes"], "bits": short(whole["bits"]),
            "exponents": whole["exponents"],
            "results": results_data(whole["results"], targets),
            "recommendation": whole["recommendation"],
        },
        "datasets": [dataset_data(datasets[i], targets, i in detailed) for i in listed],
        "unlisted": len(datasets) - len(listed),
    }
