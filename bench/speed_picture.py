#!/usr/bin/env python3
"""docs/speed.svg: how many times faster attest is than each peer, shape by shape, from the samples of the benchmarks.

    bench/speed_picture.py > docs/speed.svg

Each panel is one machine, each row a group of shapes, each mark one shape beside one peer, and the bar through the marks their geometric
mean. Groups and ratios are those of the README's tables (`groups` in table.py and gpu_table.py). The axis is logarithmic, and the line
at 1 is equal speed. The output depends on the JSON files alone; tests/documents.t compares it with the committed file.
"""

import json
import math
import os

import gpu_table
import table

RESULTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "results")
PANELS = (
    ("nvidia-h200.json", gpu_table, (1, 1.5, 2, 2.5, 3)),
    ("amd-epyc-2-cores.json", table, (1, 1.5, 2, 3, 4, 6, 8, 12, 16)),
)
PLAIN_PEER = {"memory-efficient": "PyTorch memory-efficient"}

WIDTH, LEFT, RIGHT = 880, 266, 24
LANE, ROW_GAP, MARK = 14, 8, 3.6
TITLE, AXIS, PANEL_GAP = 62, 28, 22
MARGIN = 1.06  # of the axis, beyond the lowest and the highest ratio

# The colours of the first, second and third peer of a panel, which differ in lightness, too (Okabe and Ito), and their marks.
STYLE = """
  .card { fill: #ffffff; stroke: #d0d7de }
  text { font: 13px -apple-system, "Segoe UI", "Helvetica Neue", Arial, sans-serif; fill: #1f2328 }
  .title { font-weight: 600; font-size: 15px }
  .quiet { fill: #59636e; font-size: 12px }
  .middle { text-anchor: middle }
  .band { fill: #f3f5f8 }
  .grid { stroke: #d8dee4 }
  .equal { stroke: #1f2328; stroke-width: 1.5 }
  .p0 { fill: #0072b2; stroke: #0072b2 }
  .p1 { fill: #d55e00; stroke: #d55e00 }
  .p2 { fill: #008560; stroke: #008560 }
  .mark { fill-opacity: 0.45; stroke-width: 0.8 }
  .mean { stroke-width: 3 }
  @media (prefers-color-scheme: dark) {
    .card { fill: #0d1117; stroke: #3d444d }
    text { fill: #f0f6fc }
    .quiet { fill: #a9b3be }
    .band { fill: #161b22 }
    .grid { stroke: #30363d }
    .equal { stroke: #f0f6fc }
    .p0 { fill: #56b4e9; stroke: #56b4e9 }
    .p1 { fill: #ff9a3c; stroke: #ff9a3c }
    .p2 { fill: #2fcf9f; stroke: #2fcf9f }
  }
"""


def escaped(words):
    return words.replace("&", "&amp;").replace("<", "&lt;")


def text(x, y, words, kind=""):
    return f'<text x="{x:.1f}" y="{y:.1f}"' + (f' class="{kind}"' if kind else "") + f">{escaped(words)}</text>"


def line(x1, y1, x2, y2, kind):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def mark(x, y, peer):
    """A circle, a diamond or a triangle: the peers can be told apart without colour."""
    kind = f'class="p{peer} mark"'
    if peer == 0:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{MARK}" {kind}/>'
    corners = ((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)) if peer == 1 else ((0, -1.2), (1.25, 1), (-1.25, 1))
    return '<polygon points="' + " ".join(f"{x + dx * MARK:.1f},{y + dy * MARK:.1f}" for dx, dy in corners) + f'" {kind}/>'


def panel(document, module, ticks, top):
    """(elements, the y below the panel)"""
    found = module.groups(document)
    values = [r for _, ratios in found for of_peer in ratios.values() for r in of_peer]
    low, high = math.log(min(values + [1]) / MARGIN), math.log(max(values) * MARGIN)

    def x_of(ratio):
        return LEFT + (math.log(ratio) - low) / (high - low) * (WIDTH - RIGHT - LEFT)

    out = [text(16, top + 20, module.groups_title(document), "title")]
    legend = LEFT
    for peer, name in enumerate(module.PEERS):
        words = "beside " + PLAIN_PEER.get(module.TITLES[name], module.TITLES[name])
        out += [mark(legend + 5, top + 15.5, peer), text(legend + 16, top + 20, words)]
        legend += 40 + 7 * len(words)
    out.append(text(LEFT, top + 43, "times faster than the peer; each mark is one shape, each bar a geometric mean", "quiet"))
    body, y = [], top + TITLE
    for number, (group, ratios) in enumerate(found):
        lanes = [(peer, ratios[name]) for peer, name in enumerate(module.PEERS) if ratios[name]]
        height = LANE * len(lanes) + ROW_GAP
        if number % 2 == 0:
            out.append(f'<rect x="8" y="{y:.1f}" width="{WIDTH - 16}" height="{height:.1f}" class="band"/>')
        body.append(text(16, y + height / 2 + 4.5, group))
        for lane, (peer, of_peer) in enumerate(lanes):
            middle = y + ROW_GAP / 2 + LANE * (lane + 0.5)
            body += [mark(x_of(r), middle, peer) for r in sorted(of_peer)]
            x = x_of(table.geomean(of_peer))
            if len(of_peer) > 1:
                body.append(line(x, middle - LANE / 2, x, middle + LANE / 2, f"p{peer} mean"))
        y += height
    for tick in ticks:
        out.append(line(x_of(tick), top + TITLE, x_of(tick), y + 4, "equal" if tick == 1 else "grid"))
        out.append(text(x_of(tick), y + 18, f"{tick:g} x" if tick != 1 else "equal", "quiet middle"))
    return out + body, y + AXIS


def main():
    body, y = [], 8
    for file, module, ticks in PANELS:
        with open(os.path.join(RESULTS, file), encoding="utf-8") as f:
            document = json.load(f)
        elements, y = panel(document, module, ticks, y)
        body += elements
        y += PANEL_GAP
    height = y - PANEL_GAP + 8
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" height="{height:.0f}" role="img">')
    print("<title>How many times faster attest is than each peer, by group of shapes</title>")
    print(f"<style>{STYLE}</style>")
    print(f'<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1:.0f}" rx="6" class="card"/>')
    print("\n".join(body))
    print("</svg>")


if __name__ == "__main__":
    main()
