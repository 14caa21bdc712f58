# SPDX-License-Identifier: Apache-2.0
"""Draws a table as one SVG file: a bar for each program on a logarithmic scale, with the goal and the machine's limit."""
import math

COLOURS = {"leat": "#0b6e4f", "keras": "#c8553d", "torch": "#5b6c9e", "keras3": "#d9a441", "onnx": "#7a5c86",
           "rtneural": "#8a8a8a"}
LEFT, WIDTH, BAR, GAP = 330, 560, 9, 12


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
    """Returns the marks of the axis and a function from value to position: decades that hold every bar, or from 0 on."""
    values = [row[key] for row in rows for key in list(COLOURS) + ["limit"] if row.get(key) and row[key] > 0]
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
    heights = [len([p for p in COLOURS if row.get(p) is not None]) * BAR + GAP for row in rows]
    bottom = top + 26 + sum(heights)
    for mark in marks:
        parts += [line(at(mark), top + 20, bottom, "#ddd"),
                  text(at(mark), top + 16, "%.0f" % mark if mark >= 1 else "%g" % mark, 10, "middle", "#666")]
    y = top + 26
    for row, height in zip(rows, heights):
        parts.append(text(LEFT - 8, y + height / 2, row["title"].strip(), 11, "end"))
        start = y
        for program, colour in COLOURS.items():
            if row.get(program) is None:
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


def svg_of(title, labels, panels, rows):
    """labels: the program's label by its name in COLOURS; panels: (unit, title); a panel has the rows of its unit.  A row
    has title, unit, a figure or None for each program, limit, and goals: against (a program, None) with goal or value."""
    parts, top, x = [text(20, 28, title, 17)], 70, 20
    for program, label in labels.items():
        parts += ['<rect x="%d" y="40" width="12" height="12" fill="%s"/>' % (x, COLOURS[program]),
                  text(x + 17, 50, label)]
        x += 30 + 7 * len(label)
    parts.append(text(x, 50, "tick: goal, in the colour of the peer; dashes: what the machine allows", 11, "start", "#666"))
    for unit, name in panels:
        found = [row for row in rows if row["unit"] == unit and row["leat"] is not None]
        if found:
            more, top = panel(found, name, top + 20)
            parts += more
    return ('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif">'
            '<rect width="100%%" height="100%%" fill="#fff"/>%s</svg>\n' % (max(LEFT + WIDTH + 90, x + 400), top,
                                                                        "\n".join(parts)))


def curves_of(title, most, series):
    """Draws values by iteration, from 0 to `most`: a line for each list of `series`, and a thick line for their mean."""
    left, top, width, height = 50, 40, 560, 260
    count = max(len(values) for values in series)

    def points(values):
        return " ".join("%.1f,%.1f" % (left + width * i / max(1, count - 1), top + height * (1 - value / most))
                        for i, value in enumerate(values))

    parts = [text(left, 24, title, 14)]
    for step in range(6):
        y = top + height * (1 - step / 5)
        parts += ['<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#ddd"/>' % (left, left + width, y, y),
                  text(left - 6, y + 4, "%g" % (most * step / 5), 10, "end", "#666")]
    for i in range(0, count, 5):
        parts.append(text(left + width * i / max(1, count - 1), top + height + 16, str(i + 1), 10, "middle", "#666"))
    mean = [sum(found) / len(found) for found in zip(*series)]
    for values, colour, thick in [(values, "#9bc4b5", 1) for values in series] + [(mean, COLOURS["leat"], 3)]:
        parts.append('<polyline points="%s" fill="none" stroke="%s" stroke-width="%d"/>' % (points(values), colour, thick))
    return ('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif"><rect width="100%%" '
            'height="100%%" fill="#fff"/>%s</svg>\n' % (left + width + 30, top + height + 30, "\n".join(parts)))


LINE_COLOURS = ["#c8553d", "#d9a441", "#0b6e4f", "#5b6c9e"]


def lines_over_nodes(panels):
    """Draws panels (title, nodes, most, [(label, values)]) of curves over the number of nodes, on a logarithmic axis.  most:
    the end of the vertical axis, which begins at 0; None: a logarithmic one.  A label that ends with "ring" is dashed."""
    left, width, height, top, parts = 60, 520, 240, 50, []
    for title, nodes, most, series in panels:
        low, high = (0, most) if most else (1, math.ceil(math.log10(max(nodes))))
        at_y = (lambda v: top + height * (1 - v / most)) if most else (
            lambda v: top + height * (1 - (math.log10(max(v, 10)) - low) / (high - low)))
        x = [left + width * math.log2(n / nodes[0]) / math.log2(nodes[-1] / nodes[0]) for n in nodes]
        parts.append(text(left, top - 14, title, 14))
        for mark in ([most * i / 5 for i in range(6)] if most else [10 ** i for i in range(low, high + 1)]):
            parts += ['<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#ddd"/>' % (left, left + width, at_y(mark), at_y(mark)),
                      text(left - 6, at_y(mark) + 4, "%g" % mark, 10, "end", "#666")]
        parts += [text(at, top + height + 16, str(n), 10, "middle", "#666") for at, n in zip(x, nodes)]
        networks = list(dict.fromkeys(label.rsplit(", ", 1)[0] if label.endswith(("ring", "leat")) else label
                                      for label, _ in series))
        for i, (label, values) in enumerate(series):
            name = label.rsplit(", ", 1)[0] if label.endswith(("ring", "leat")) else label
            dashes = 'stroke-dasharray="5 4"' if label.endswith("ring") else ""
            parts.append('<polyline points="%s" fill="none" stroke="%s" stroke-width="2" %s/>' % (
                " ".join("%.1f,%.1f" % (at, at_y(v)) for at, v in zip(x, values)),
                LINE_COLOURS[networks.index(name) % len(LINE_COLOURS)], dashes))
            parts.append(text(left + width + 12, top + 14 + 18 * i, label, 11, "start",
                              LINE_COLOURS[networks.index(name) % len(LINE_COLOURS)]))
        top += height + 70
    return ('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif"><rect width="100%%" '
            'height="100%%" fill="#fff"/>%s</svg>\n' % (left + width + 190, top - 20, "\n".join(parts)))
