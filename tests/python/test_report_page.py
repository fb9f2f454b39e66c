"""The page of h5fpconv inspect --html, in Debian's chromium

SPDX-License-Identifier: MIT
"""
import io
import json
import re
import shutil
import subprocess
import sys

import h5py
import numpy as np
import pytest
from h5fpconv.report.page import DETAILS, LINES, page_data, render
from PIL import Image
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

HOSTILE = ("/<script>alert(1)</script>", "/<img src=x onerror=alert(1)>", "/\"'&amp;<b>",
           "/" + "a_very_long_name_without_a_break" * 8)
SMALL = 130  # datasets beside those

# Known to work as root; a page that asks for anything from outside fails the tests anyway.
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync")


def inspect(path, page, *options):
    command = [sys.executable, "-m", "h5fpconv", "inspect", path, "--html", page, "--json", *options]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("page")


@pytest.fixture(scope="module")
def report(folder):
    """A page, and the numbers that it shows."""
    random = np.random.default_rng(1)
    path = folder / "model & <b>weights.h5"
    with h5py.File(path, "w") as file:
        for name in HOSTILE:
            file[name] = random.standard_normal((16, 64)).astype(np.float32)
        file["encoder/weight"] = random.standard_normal((64, 128)).astype(np.float32)
        file["half"] = random.standard_normal((8, 32)).astype(np.float16)
        file["zeros"] = np.zeros(7, np.float32)
        file["special"] = np.array([1, np.nan, np.inf], np.float32)
        file["empty"] = np.zeros((0, 2), np.float32)
        file["scalar"] = np.float32(2.5)
        for i in range(SMALL):
            file[f"layer/{i}/bias"] = random.standard_normal(3).astype(np.float32)
    return inspect(path, folder / "page.html", "--budget", "30dB")


@pytest.fixture(scope="module")
def browser(folder):
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in (*FLAGS, f"--user-data-dir={folder / 'profile'}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
    driver.set_page_load_timeout(60)
    driver.get("about:blank")  # or what the browser's own first page asks for may come late
    yield driver
    driver.quit()


def look_at(browser, width=1280, height=900, scheme="light"):
    """The size of the window, as of a phone where it is narrow, and the user's colours."""
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
        "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {
        "features": [{"name": "prefers-color-scheme", "value": scheme}]})


def load(browser, path):
    """Opens the page; afterwards the logs are those of this page."""
    look_at(browser)
    for kind in ("browser", "performance"):
        browser.get_log(kind)
    browser.get(path.as_uri())


@pytest.fixture
def page(browser, folder, report):
    """The page, freshly opened; it has to leave the console empty and the network alone."""
    load(browser, folder / "page.html")
    yield browser
    assert browser.get_log("browser") == []
    requests = requested(browser)
    assert requests and all(url.startswith(("file://", "data:")) for url in requests), requests
    assert {url for url in requests if url.startswith("file:")} == {(folder / "page.html").as_uri()}


def requested(browser):
    """The addresses that the page asked for."""
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    return [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]


def find(browser, selector):
    return browser.find_element(By.CSS_SELECTOR, selector)


def rows(browser, table):
    """The texts of a table's cells."""
    return browser.execute_script(
        "return [...document.querySelectorAll(arguments[0] + ' tbody tr')]"
        ".map(r => [...r.cells].map(c => c.textContent))", table)


def header(browser, table, title):
    return next(h for h in browser.find_elements(By.CSS_SELECTOR, f"{table} th")
                if h.text.strip().startswith(title))


def test_head_and_recommendation(page, report):
    assert page.title == "model & <b>weights.h5 - h5fpconv inspect"
    assert find(page, "h1").text == "model & <b>weights.h5"
    assert str(len(report["datasets"])) in find(page, "#file-facts").text
    text = find(page, "#recommendation").text
    mixed = report["whole_file"]["all_recommendations"]
    assert "Recommended for 30 dB" in text and f"{mixed['sqnr_db']:.1f} dB" in text
    assert report["whole_file"]["recommendation"]["reason"] in text


def test_targets_are_listed_with_their_numbers(page, report):
    results = report["whole_file"]["results"]
    shown = {row[0].removesuffix(" recommended"): row for row in rows(page, "#targets")}
    assert list(shown) == [t["name"] for t in report["targets"] if t["name"] in results]
    for name, row in shown.items():
        result = results[name]
        assert row[2] == f"{result['bytes']:,}"
        assert row[3] == "exact" if result["exact"] else \
            row[3] == f"{float(format(result['sqnr_db'], '.4g')):.2f}"
    chosen = report["whole_file"]["recommendation"]["target"]
    assert find(page, "#targets tr.chosen").text.split()[0] == chosen


def test_sorting_by_click_and_keyboard(page, report):
    results = report["whole_file"]["results"]
    by_sqnr = header(page, "#targets", "SQNR")
    assert by_sqnr.get_attribute("aria-sort") is None
    by_sqnr.find_element(By.TAG_NAME, "button").click()
    assert by_sqnr.get_attribute("aria-sort") == "descending"

    def key(row):
        result = results[row[0].removesuffix(" recommended")]
        return float("inf") if result["exact"] else round(result["sqnr_db"], 2)

    keys = [key(row) for row in rows(page, "#targets")]
    assert keys == sorted(keys, reverse=True) and len(set(keys)) > 10
    button = by_sqnr.find_element(By.TAG_NAME, "button")
    button.send_keys(Keys.ENTER)
    assert by_sqnr.get_attribute("aria-sort") == "ascending"
    keys = [key(row) for row in rows(page, "#targets")]
    assert keys == sorted(keys)
    by_name = header(page, "#targets", "target")
    by_name.find_element(By.TAG_NAME, "button").send_keys(Keys.SPACE)
    assert by_name.get_attribute("aria-sort") == "ascending"
    assert by_sqnr.get_attribute("aria-sort") is None
    names = [row[0].removesuffix(" recommended") for row in rows(page, "#targets")]
    assert names[0] == "bf16" and names[-1] == "tensor_hif8"


def test_names_are_text(page, report):
    assert set(HOSTILE) <= {d["name"] for d in report["datasets"]}
    find(page, "#filter").send_keys("alert(1)")
    names = [row[0] for row in rows(page, "#datasets")]
    assert sorted(names) == sorted(HOSTILE[:2])
    for name in names:
        next(b for b in page.find_elements(By.CSS_SELECTOR, "#datasets td button") if b.text == name).click()
        assert find(page, "#view-title").text == name
        assert name in find(page, "#view-title").get_attribute("textContent")
    counts = page.execute_script(
        "return ['script', 'img', 'b', 'iframe'].map(t => document.querySelectorAll(t).length)")
    assert counts == [2, 0, 0, 0]


def test_a_dataset_is_shown(page, report):
    dataset = next(d for d in report["datasets"] if d["name"] == "/encoder/weight")
    whole = page.execute_script("return document.querySelector('#exponent-chart svg').outerHTML")
    find(page, "#filter").send_keys("encoder/w")
    find(page, "#datasets td button").click()
    assert find(page, "#view-title").text == "/encoder/weight"
    assert page.switch_to.active_element == find(page, "#view-title")
    facts = find(page, "#view-facts").text
    assert "64 × 128" in facts and "8,192" in facts and "f32" in facts
    assert dataset["recommendation"]["reason"] in find(page, "#view-note").text
    assert page.execute_script("return document.querySelector('#exponent-chart svg').outerHTML") != whole
    bars = page.execute_script("return document.querySelectorAll('#exponent-chart .bars rect').length")
    assert bars == sum(n > 0 for n in dataset["exponents"]["counts"])
    find(page, "#show-whole").click()
    assert find(page, "#view-title").text == "The whole file"
    assert page.execute_script("return document.querySelector('#exponent-chart svg').outerHTML") == whole


@pytest.mark.parametrize("name, text", [("/zeros", "no finite value but zero"),
                                        ("/empty", "no finite value but zero"),
                                        ("/scalar", "a scalar has no axis"), ("/special", "Inf")])
def test_odd_datasets_are_shown(page, name, text):
    find(page, "#filter").send_keys(name)
    next(b for b in page.find_elements(By.CSS_SELECTOR, "#datasets td button") if b.text == name).click()
    assert find(page, "#view-title").text == name
    assert text in find(page, "#view").text
    assert "NaN %" not in find(page, "#view").text and "undefined" not in find(page, "main").text


def test_long_lists_come_in_parts(page, report):
    total = len(report["datasets"])
    assert total > 100 and len(rows(page, "#datasets")) == 100
    assert find(page, "#datasets-count").text == f"100 of {total} shown"
    find(page, "#more").click()
    assert len(rows(page, "#datasets")) == total and not find(page, "#more").is_displayed()
    size = header(page, "#datasets", "size")
    size.find_element(By.TAG_NAME, "button").click()
    assert rows(page, "#datasets")[0][0] == "/encoder/weight"


def test_charts_say_what_they_show(page):
    text = find(page, "main").get_attribute("textContent")
    for phrase in ("SQNR, dB", "bits a value, scales included", "magnitude |x|", "budget 30 dB",
                   "thick normal, thin subnormal"):
        assert phrase in text
    legend = page.find_elements(By.CSS_SELECTOR, "#sqnr-legend li")
    assert [item.text for item in legend][:3] == ["cast", "MX", "NVFP4"]
    # Marks differ in shape as well as in colour.
    shapes = page.execute_script(
        "return [...document.querySelectorAll('#sqnr-legend svg')].map(s => s.innerHTML)")
    assert len(set(shapes)) == len(shapes) >= 8
    for chart in page.find_elements(By.CSS_SELECTOR, ".chart > svg"):
        assert chart.get_attribute("role") == "img" and len(chart.get_attribute("aria-label")) > 30
    assert len(page.find_elements(By.CSS_SELECTOR, "#exponent-chart .normal")) == 9


@pytest.mark.parametrize("width", [320, 360, 768, 1280, 1920])
def test_fits_its_width(page, width):
    look_at(page, width, 800)
    find(page, "#filter").send_keys("long_name")
    find(page, "#datasets td button").click()
    assert page.execute_script("return document.documentElement.scrollWidth") <= width
    assert page.execute_script("return document.body.scrollWidth") <= width
    widest = page.execute_script(
        "return Math.max(...[...document.querySelectorAll('main > *, .card, .chart > svg')]"
        ".map(e => e.getBoundingClientRect().right))")
    assert widest <= width
    if width < 600:  # the table scrolls by itself, and is reachable by keyboard
        scrolls = page.execute_script(
            "const s = document.querySelector('#targets').parentElement;"
            "return [s.scrollWidth > s.clientWidth, s.tabIndex]")
        assert scrolls == [True, 0]


def luminance(colour):
    parts = [int(n) / 255 for n in re.findall(r"\d+", colour)[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    a, b = sorted((luminance(one), luminance(other)), reverse=True)
    return (a + 0.05) / (b + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark_are_readable(page, scheme):
    look_at(page, scheme=scheme)
    colour = "return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]"
    background = page.execute_script(colour, "body", "backgroundColor")
    assert (luminance(background) > 0.8) == (scheme == "light")
    assert (luminance(background) < 0.05) == (scheme == "dark")
    card = page.execute_script(colour, ".card", "backgroundColor")
    for selector, of in ((".card", "color"), (".note, footer", "color"), ("#targets td", "color"),
                         (".badge", "color"), ("#exponent-chart text", "fill"), ("dt", "color"),
                         ("#sqnr-chart .label", "fill"), ("#sqnr-chart .budget-text", "fill")):
        assert contrast(page.execute_script(colour, selector, of), card) >= 4.5, selector
    for family in ("cast", "mx", "nvfp4", "per_tensor", "per_row", "per_column", "pow2_row"):
        assert contrast(page.execute_script(colour, f"#sqnr-chart .{family}", "color"), card) >= 3, family


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_screenshot_has_marks(page, scheme):
    look_at(page, 1280, 1400, scheme)
    image = Image.open(io.BytesIO(page.get_screenshot_as_png())).convert("RGB")
    assert image.size == (1280, 1400)
    pixels = np.asarray(image).reshape(-1, 3)
    colours, counts = np.unique(pixels, axis=0, return_counts=True)
    assert len(colours) > 200
    assert 0.3 < counts.max() / len(pixels) < 0.95
    colour = page.execute_script(
        "return getComputedStyle(document.querySelector('#exponent-chart .normal')).stroke")
    bars = np.array([int(n) for n in re.findall(r"\d+", colour)[:3]])
    assert np.count_nonzero((pixels == bars).all(axis=1)) > 2000  # nine thick lines


def test_names_nothing_outside(folder, report):
    text = (folder / "page.html").read_text()
    assert set(re.findall(r"https?://[^\s\"'<)]*", text)) == {"http://www.w3.org/2000/svg"}
    frame = text[:text.index('id="data"')] + text[text.rindex("<script>"):]
    assert not re.search(r'@import|url\(|\bsrc=|href="(?!data:)', frame)
    assert "default-src 'none'" in text
    assert text.count("<script") == 2  # the data's are escaped


def test_page_without_a_budget(browser, folder, report):
    inspect(folder / "model & <b>weights.h5", folder / "plain.html", "--only", "half")
    load(browser, folder / "plain.html")
    assert not browser.find_elements(By.CSS_SELECTOR, "#recommendation, .badge, .budget")
    assert [row[:3] for row in rows(browser, "#datasets")] == [["/half", "8 × 32", "f16"]]
    assert browser.get_log("browser") == []


def test_page_of_a_sample_with_a_budget_of_bits(browser, folder, report):
    inspect(folder / "model & <b>weights.h5", folder / "bits.html", "--budget", "8bits", "--sample",
            "1000", "--scale", "ceil", "--only", "encoder/*")
    load(browser, folder / "bits.html")
    assert "Recommended for 8 bits a value" in find(browser, "#recommendation").text
    facts = find(browser, "#file-facts").text
    assert "MX ceil" in facts and "about 1,000 values" in facts
    assert browser.find_elements(By.CSS_SELECTOR, "#sqnr-chart .budget")
    assert "mxfp4 (ceil)" in [row[0] for row in rows(browser, "#targets")]
    find(browser, "#datasets td button").click()
    assert "a sample of" in find(browser, "#view-facts").text
    assert browser.get_log("browser") == []


def test_many_datasets(browser, folder, report):
    """A page of more datasets than are listed: bounded in size, and quick."""
    dataset = next(d for d in report["datasets"] if d["name"] == "/encoder/weight")
    count = LINES + 500
    many = {**report, "datasets": [{**dataset, "name": f"/layer/{i}/weight", "bytes": 4 * (i + 1)}
                                   for i in range(count)]}
    data = page_data(many)
    assert len(data["datasets"]) == LINES and data["unlisted"] == 500
    detailed = [d["bytes"] for d in data["datasets"] if "results" in d]
    assert len(detailed) == DETAILS and min(detailed) == 4 * (count - DETAILS + 1)
    page = folder / "many.html"
    page.write_text(render(many))
    assert page.stat().st_size < 8e6
    load(browser, page)
    taken = browser.execute_script(
        "const n = performance.getEntriesByType('navigation')[0]; return n.loadEventEnd - n.startTime")
    assert 0 < taken < 20000
    assert len(rows(browser, "#datasets")) == 100
    assert "500 smaller ones" in find(browser, "#datasets-count").text
    find(browser, "#datasets td button").click()  # of a small one
    assert "largest datasets only" in find(browser, "#view-note").text
    assert not find(browser, "#view-details").is_displayed()
    assert browser.get_log("browser") == []
