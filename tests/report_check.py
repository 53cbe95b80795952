"""Looks at the documents of `attest report`, for tests/report.t. Each command says what is wrong, one line each, and fails.

    report_check.py html FILE            well formed, accessible, loads nothing
    report_check.py style FILE           text has contrast in the light and in the dark style
    report_check.py junit FILE           XML whose counts are right
    report_check.py sarif FILE           the structure of SARIF 2.1.0
    report_check.py picture FILE light|dark   a screenshot that is not blank
"""

import json
import re
import struct
import sys
import xml.etree.ElementTree
import zlib
from html.parser import HTMLParser

VOID = {"meta", "link", "br", "wbr", "img", "hr", "input"}
LOADING = {"src", "srcset", "data", "poster", "action", "formaction", "background", "cite", "ping", "xlink:href"}
faults = []


def fault(text):
    faults.append(text)


# ------------------------------------------------------------------------------------------------------------------- HTML

class Page(HTMLParser):
    """Checks nesting by a stack, and collects what the rules below are about."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.stack, self.identifiers, self.links, self.text = [], [], [], []
        self.counts = {}

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.counts[tag] = self.counts.get(tag, 0) + 1
        if tag == "script":
            fault("a script element")
        for name, value in attributes.items():
            if name.startswith("on"):
                fault(f"an event handler: {name}")
            if name in LOADING:
                fault(f"an attribute that loads: {name}={value}")
            if name in ("class", "id", "scope", "role") and not re.fullmatch(r"[a-z0-9 -]+", value or ""):
                fault(f"a strange attribute: {name}={value}")
            if name == "href" and not (value.startswith("#") or value == "data:,"):
                fault(f"a link to elsewhere: {value}")
            if name == "style" and not re.fullmatch(r"(left|width):[0-9.]+(%|px)", value):
                fault(f"a style that is no position: {value}")
        if "id" in attributes:
            self.identifiers.append(attributes["id"])
        if tag == "a":
            self.links.append(attributes.get("href", ""))
        if tag == "th" and attributes.get("scope") not in ("row", "col"):
            fault("a table header without a scope")
        if tag == "svg" and not self.inside("svg") and not (attributes.get("role") == "img" and attributes.get("aria-label")):
            fault("a picture without a label")
        if tag == "details" and self.stack and self.stack[-1] in ("p", "span"):
            fault(f"details inside of {self.stack[-1]}")
        if tag in ("div", "p", "ul", "ol", "dl", "table", "figure", "section") and self.inside("p"):
            fault(f"{tag} inside of p, which browsers would close")
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        if tag in VOID:
            fault(f"</{tag}>")
        elif not self.stack or self.stack[-1] != tag:
            fault(f"</{tag}> at line {self.getpos()[0]} closes {self.stack[-1] if self.stack else 'nothing'}")
        if tag in self.stack:
            while self.stack.pop() != tag:
                pass

    def handle_data(self, data):
        if not self.inside("style"):
            self.text.append(data)

    def inside(self, tag):
        return tag in self.stack


def check_html(path):
    text = open(path, encoding="utf-8").read()
    page = Page()
    page.feed(text)
    page.close()
    if page.stack:
        fault(f"not closed: {page.stack}")
    if not text.startswith("<!doctype html>"):
        fault("no doctype")
    for name in set(page.identifiers):
        if page.identifiers.count(name) > 1:
            fault(f"id {name} twice")
    for link in page.links:
        if link[1:] not in page.identifiers:
            fault(f"a link to nowhere: {link}")
    for tag in ("title", "h1", "main", "header"):
        if page.counts.get(tag) != 1:
            fault(f"{page.counts.get(tag, 0)} of {tag}")
    style = "".join(re.findall(r"<style>(.*?)</style>", text, re.S))
    if re.search(r"url\(|@import|@font-face", style):
        fault("the style loads something")
    if "Content-Security-Policy" not in text or "default-src 'none'" not in text:
        fault("no policy that forbids loading")
    if re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u202a-\u202e\u2066-\u2069\ufffe\uffff]", text):
        fault("control characters")
    print(re.sub(r"\s+", " ", " ".join(page.text)))


# --------------------------------------------------------------------------------------------------------------- contrast

def luminance(colour):
    parts = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [x / 12.92 if x <= 0.03928 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a, b):
    light, dark = sorted((luminance(a), luminance(b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def check_style(path):
    text = open(path, encoding="utf-8").read()
    blocks = re.findall(r":root \{(.*?)\}", text, re.S)[:2]
    pairs = [("ink", "ground"), ("muted", "ground"), ("ink", "panel"), ("muted", "panel"), ("accent", "ground"), ("ground", "accent")]
    pairs += [(tone, f"{tone}-ground") for tone in ("pass", "fail", "open", "none", "crown")]
    pairs += [(tone, ground) for tone in ("pass", "fail", "open", "none") for ground in ("ground", "panel")]
    if len(blocks) != 2:
        fault("there are not two sets of colours")
    for name, block in zip(("light", "dark"), blocks):
        colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block))
        for ink, ground in pairs:
            found = contrast(colours[ink], colours[ground])
            if found < 4.5:
                fault(f"{name}: {ink} on {ground} has a contrast of {found:.2f}, less than 4.5")
        ramp = [luminance(colours[f"heat{level}"]) for level in range(8)]
        if ramp != sorted(ramp, reverse=name == "light"):
            fault(f"{name}: the colours of the map are not in the order of their brightness")


# ---------------------------------------------------------------------------------------------------------- JUnit, SARIF

def check_junit(path):
    root = xml.etree.ElementTree.parse(path).getroot()
    total = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
    names = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    for suite in root.findall("testsuite"):
        cases = suite.findall("testcase")
        found = {"tests": len(cases)}
        for key, element in names.items():
            found[key] = sum(case.find(element) is not None for case in cases)
        for key, count in found.items():
            total[key] += count
            if suite.get(key) != str(count):
                fault(f"{suite.get('name')}: {key} is {suite.get(key)}, not {count}")
        for case in cases:
            if not case.get("name") or not case.get("classname") or float(case.get("time")) < 0:
                fault(f"a case without name, class or time: {case.attrib}")
    for key, count in total.items():
        if root.get(key) != str(count):
            fault(f"all: {key} is {root.get(key)}, not {count}")
    print(json.dumps(total))


def check_sarif(path):
    log = json.load(open(path, encoding="utf-8"))
    if log.get("version") != "2.1.0" or not log.get("$schema", "").endswith("sarif-2.1.0.json"):
        fault("version and $schema")
    for run in log["runs"]:
        driver = run["tool"]["driver"]
        rules = [rule["id"] for rule in driver["rules"]]
        if driver["name"] != "attest" or len(rules) != len(set(rules)):
            fault("the tool")
        for rule in driver["rules"]:
            if not rule["shortDescription"]["text"] or rule["defaultConfiguration"]["level"] not in ("error", "note"):
                fault(f"rule {rule}")
        for result in run["results"]:
            if not result["message"]["text"] or result["level"] not in ("error", "warning", "note") or "ruleId" not in result:
                fault(f"result {result}")
            for location in result.get("locations", []):
                place = location["physicalLocation"]
                if place["region"]["startLine"] < 1 or re.search(r"[^A-Za-z0-9\-._~/:%]", place["artifactLocation"]["uri"]):
                    fault(f"location {place}")
            print(result["level"], result["ruleId"], result["properties"]["kernel"].split("<")[0])


# ---------------------------------------------------------------------------------------------------------------- pictures

def rows_of_png(path):
    data = open(path, "rb").read()
    at, packed = 8, b""
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", data[at + 8:at + 18])
        elif kind == b"IDAT":
            packed += data[at + 8:at + 8 + size]
        at += size + 12
    step = {2: 3, 6: 4}[colour]
    raw, before = zlib.decompress(packed), bytearray(width * step)
    for y in range(height):
        start = y * (width * step + 1)
        kind, row = raw[start], bytearray(raw[start + 1:start + 1 + width * step])
        for x in range(len(row)):
            left = row[x - step] if x >= step else 0
            up, corner = before[x], before[x - step] if x >= step else 0
            guess = left + up - corner
            nearest = min((abs(guess - left), 0, left), (abs(guess - up), 1, up), (abs(guess - corner), 2, corner))[2]
            row[x] = (row[x] + (0, left, up, (left + up) // 2, nearest)[kind]) & 255
        yield [tuple(row[x:x + 3]) for x in range(0, len(row), step)]
        before = row


def check_picture(path, style):
    counts = {}
    for row in rows_of_png(path):
        for pixel in row:
            counts[pixel] = counts.get(pixel, 0) + 1
    ground = max(counts, key=counts.get)
    drawn = 1 - counts[ground] / sum(counts.values())
    if len(counts) < 50 or drawn < 0.03:
        fault(f"blank: {len(counts)} colours, {drawn:.1%} is drawn on")
    if (sum(ground) > 384) != (style == "light"):
        fault(f"the ground is {ground}, which is not {style}")


COMMANDS = {"html": check_html, "style": check_style, "junit": check_junit, "sarif": check_sarif, "picture": check_picture}
COMMANDS[sys.argv[1]](*sys.argv[2:])
for line in faults[:20]:
    print(line, file=sys.stderr)
sys.exit(1 if faults else 0)
