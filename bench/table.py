# SPDX-License-Identifier: Apache-2.0
"""Formats tables as text or Markdown, and the numbers in them."""


def number(value):
    if value is None:
        return "-"
    return "%.0f" % value if abs(value) >= 100 else "%.3g" % value


def ratio(value):
    return "%.0fx" % value if value >= 10 else "%.3gx" % value


def lines_of(heads, rows, markdown, left=(0,)):
    """Returns the lines of a table.  `rows` are lists of texts; columns are right-aligned except those in `left`."""
    lines = [heads] + rows
    if markdown:
        lines.insert(1, ["---"] * len(heads))
        return ["| " + " | ".join(cells) + " |" for cells in lines]
    widths = [max(len(cells[i]) for cells in lines) for i in range(len(heads))]
    return ["  ".join(cell.ljust(width) if i in left else cell.rjust(width)
                      for i, (cell, width) in enumerate(zip(cells, widths))).rstrip() for cells in lines]
