#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws docs/results.svg: README.md's five rows from the newest table of bench/README.md, which is its first one.

usage: bench/results.py      writes docs/results.svg and prints the rows for README.md
"""
import pathlib

from plot import COLOURS, line, text

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROWS = {
    "MLP, Adam step 64": "MLP 64-128-128-4, training step of 64",
    "LSTM, Adam step 64": "LSTM(64) over 64 steps, training step of 64",
    "CNN 28x28, Adam step 64": "CNN 28x28, training step of 64",
    "CNN, an epoch of 60,000 by 64, from files": "CNN 28x28, an epoch of 60,000 from files",
    "ResNet-50, SGD step 8": "ResNet-50, training step of 8",
}
PEERS = {"PyTorch": "torch", "Keras (current)": "keras3", "Keras 2.3.1": "keras", "ONNX Runtime": "onnx"}
LEFT, WIDTH, BAR, ROW = 300, 420, 12, 40


def newest():
    """Reads the first table that has goals: row -> (unit, leat, peer, peer's figure, ratio, goals, met or missed)."""
    found = {}
    for row in (ROOT / "bench/README.md").read_text().splitlines():
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        if row.startswith("| work |") and found:
            break
        if len(cells) in (8, 9) and cells[0] in ROWS and cells[0] not in found:
            peer, figure = cells[3].rsplit(" ", 1)
            found[cells[0]] = (cells[1], float(cells[2]), peer, float(figure), *cells[4:7])
    missing = [row for row in ROWS if row not in found]
    if missing:
        raise SystemExit("bench/README.md has no row " + ", ".join(missing))
    return found


def draw(rows):
    most = max(1 + int(peer / leat) for _, leat, _, peer, *_ in rows.values())
    at = lambda ratio: LEFT + WIDTH * ratio / most
    bottom = 30 + ROW * len(rows)
    parts = [text(LEFT, 16, "time, leat = 1 (shorter is faster)", 13)]
    parts += [line(at(mark), 24, bottom, "#ddd") for mark in range(most + 1)]
    for i, (name, (unit, leat, peer, figure, *_)) in enumerate(rows.items()):
        y = 34 + ROW * i
        parts.append(text(LEFT - 8, y + BAR + 3, ROWS[name], 12, "end"))
        for k, (who, value, colour) in enumerate([("leat", leat, COLOURS["leat"]), (peer, figure, COLOURS[PEERS[peer]])]):
            parts.append('<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>' % (LEFT, y + k * (BAR + 1),
                                                                                  at(value / leat) - LEFT, BAR, colour))
            parts.append(text(at(value / leat) + 5, y + k * (BAR + 1) + 10, "%s %g %s" % (who, value, unit), 11))
    width, height = LEFT + WIDTH + 150, bottom + 8
    return ('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif">\n'
            '<rect width="100%%" height="100%%" fill="#fff"/>\n%s\n</svg>\n' % (width, height, width, height, "\n".join(parts)))


def main():
    found = newest()
    rows = {name: found[name] for name in ROWS}
    (ROOT / "docs/results.svg").write_text(draw(rows))
    print("| work | leat | best peer | times as fast | goal |\n|---|---|---|---|---|")
    for name, (unit, leat, peer, figure, times, goals, met) in rows.items():
        goal = goals.split(" of ")[-1].split("x")[0]
        print("| %s | %g %s | %s %g %s | %s | %s: %s |" % (ROWS[name], leat, unit, peer, figure, unit, times.rstrip("x"), goal, met))


main()
