# SPDX-License-Identifier: Apache-2.0
"""The table of bench/compare-feed as one SVG file: bars on a logarithmic scale, the goal and the machine's limit beside."""
import math

COLOURS = {"leat": "#0b6e4f", "keras": "#c8553d", "torch": "#5b6c9e"}
LABELS = {"leat": "leat", "keras": "Keras 2.3.1", "torch": "PyTorch"}
LEFT, WIDTH, BAR, GAP = 330, 560, 9, 12
PANELS = (("us", "microseconds"), ("ms", "milliseconds"), ("%", "percent of the trainer's time"), ("x", "speed-up"))


def text(x, y, words, size=12, anchor="start", colour="#222"):
    words = words.replace("&", "&amp;").replace("<", "&lt;")
    return '<text x="%.1f" y="%.1f" font-size="%d" text-anchor="%s" fill="%s">%s</text>' % (x, y, size, anchor, colour,
                                                                                       words)


def line(x, y1, y2, colour, width=1, dash=""):
    return '<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" stroke="%s" stroke-width="%g" %s/>' % (
        x, x, y1, y2, colour, width, 'stroke-dasharray="%s"' % dash if dash else "")


def number(value):
    return "%.0f" % value if abs(value) >= 1000 else "%.3g" % value


def scale_of(rows, linear):
    """Marks, and where a value stands: decades that hold every bar, or from 0 on."""
    values = [row[key] for row in rows for key in ("leat", "keras", "torch", "limit") if row.get(key) and row[key] > 0]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    high = max(high, low + 1)
    if linear:
        most = math.ceil(max(values))
        return range(most + 1), lambda value: LEFT + WIDTH * max(value, 0) / most
    return ([10.0 ** decade for decade in range(low, high + 1)],
            lambda value: LEFT + WIDTH * (max(math.log10(max(value, 1e-12)), low) - low) / (high - low))


def panel(rows, title, top):
    marks, at = scale_of(rows, title == "speed-up")
    parts = [text(LEFT, top, title, 14)]
    heights = [len([p for p in COLOURS if row[p] is not None]) * BAR + GAP for row in rows]
    bottom = top + 26 + sum(heights)
    for mark in marks:
        parts += [line(at(mark), top + 20, bottom, "#ddd"),
                  text(at(mark), top + 16, "%.0f" % mark if mark >= 1 else "%g" % mark, 10, "middle", "#666")]
    y = top + 26
    for row, height in zip(rows, heights):
        parts.append(text(LEFT - 8, y + height / 2, row["title"].strip(), 11, "end"))
        start = y
        for program, colour in COLOURS.items():
            if row[program] is None:
                continue
            end = at(row[program])
            parts += ['<rect x="%d" y="%.1f" width="%.1f" height="%d" fill="%s"/>' % (LEFT, y, max(end - LEFT, 1),
                                                                                     BAR - 1, colour),
                      text(end + 4, y + BAR - 1, number(row[program]), 9, "start", "#444")]
            y += BAR
        for goal in row["goals"]:
            if goal["against"]:
                parts.append(line(at(row[goal["against"]] / goal["goal"]), start - 2, start + BAR,
                                  COLOURS[goal["against"]], 2))
            else:
                parts.append(line(at(goal["value"]), start - 2, start + BAR, "#000", 2))
        if row["limit"]:
            parts.append(line(at(row["limit"]), start - 2, y + 1, "#000", 1, "2 2"))
        y = start + height
    return parts, bottom + 34


def svg_of(report):
    parts, top = [text(20, 28, "The feed beside its peers: %d workers, medians of %d rounds" % (
        report["workers"], report["rounds"]), 17)], 70
    x = 20
    for program, colour in COLOURS.items():
        version = report["programs"].get(program, {}).get("version", "")
        label = LABELS[program] + (" " + version if version and version not in LABELS[program] else "")
        parts += ['<rect x="%d" y="40" width="12" height="12" fill="%s"/>' % (x, colour), text(x + 17, 50, label)]
        x += 60 + 8 * len(label)
    parts.append(text(x, 50, "tick: goal, in the colour of the peer; dashes: what the machine allows", 11, "start", "#666"))
    for unit, title in PANELS:
        rows = [row for row in report["rows"] if row["unit"] == unit and row["leat"] is not None]
        if rows:
            more, top = panel(rows, title, top + 20)
            parts += more
    return ('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif">'
            '<rect width="100%%" height="100%%" fill="#fff"/>%s</svg>\n' % (LEFT + WIDTH + 90, top, "\n".join(parts)))
