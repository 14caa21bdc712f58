# SPDX-License-Identifier: Apache-2.0
"""What the parts of tools/collection share, and the table: collection.py WORK prints it.  See tests/interop/README.md."""
import glob
import json
import os
import re
import sys

import numpy as np

WARM, STEPS, MORE = 2, 3, 2
# leat may be FACTOR times as far from Keras as Keras's runs from weights with noise are, or nearer than FLOOR.
FACTOR, FLOOR = 8.0, 1e-5
PREDICTS, EVALUATES = 1e-5, 1e-5


def numbered(archive, prefix):
    """Returns the arrays prefix0, prefix1, ... of an npz."""
    count = len([n for n in archive.files if n.startswith(prefix) and n[len(prefix):].isdigit()])
    return [archive["%s%d" % (prefix, i)] for i in range(count)]


def distances(a, exact):
    """Returns the distance of each tensor, relative to its largest change; a tensor that hardly changes is compared
    with the largest change of all tensors."""
    least = max([1e-6 * np.max(np.abs(v)) for v in exact if v.size] + [1e-30])
    return np.array([np.max(np.abs(u - v)) / max(np.max(np.abs(v)), least) if v.size else 0.0
                     for u, v in zip(a, exact)])


def worst_error(found, wanted):
    """Returns the largest difference relative to the largest magnitude."""
    if len(found) != len(wanted):
        return float("inf")
    worst = 0.0
    for a, b in zip(found, wanted):
        a, b = np.asarray(a), np.asarray(b)
        if a.shape != b.shape:
            return float("inf")
        if b.size:
            worst = max(worst, float(np.max(np.abs(a.astype("float64") - b))) / max(1e-3, float(np.max(np.abs(b)))))
    return worst


def worst_pair(found, scatter):
    """Returns the distance and the scatter of the tensor whose distance is largest for its scatter."""
    if not len(found):
        return 0.0, 0.0
    i = int(np.argmax(found / (scatter + 1e-6)))
    return float(found[i]), float(scatter[i])


def write(path, facts):
    with open(path, "w") as out:
        json.dump(facts, out, indent=1, sort_keys=True)


def judged(folder):
    """Returns, for the predictions (y), the gradient (g) and the update (u), leat's distance and that of Keras, and True
    if leat is inside.  Distances are from Keras in float64 if there is exact.npz, otherwise from Keras's first run."""
    def load(name):
        path = os.path.join(folder, name)
        return np.load(path) if os.path.exists(path) else None
    base, leat, exact = load("data.npz"), load("leat_changes.npz"), load("exact.npz")
    results = {}
    for prefix in "ygu":
        mine, first = numbered(leat, prefix), numbered(base, prefix)
        if len(mine) != len(first) or not mine:
            continue
        wanted = numbered(exact, prefix) if exact is not None else first
        scatter = base[prefix + "_scatter"] if prefix + "_scatter" in base.files else np.zeros(len(first))
        scatter = scatter + (distances(first, wanted) if exact is not None else 0.0)
        found = distances(mine, wanted)
        limit = PREDICTS if prefix == "y" else FLOOR
        results[prefix] = worst_pair(found, scatter), bool(np.all(found <= FACTOR * scatter + limit))
    return results


def read(path):
    """Returns the JSON of a file, or {} if there is no such file."""
    if not os.path.exists(path):
        return {}
    with open(path) as file:
        return json.load(file)


def number(value, limit):
    """Returns the text of a cell and True if the value is within the limit."""
    if isinstance(value, (int, float)):
        return ("%.0e" % value if value <= limit else "**%.0e**" % value), value <= limit
    return "**no**", False


def pair(value):
    """Returns the text of a cell of a distance and its scatter."""
    if not isinstance(value, (list, tuple)):
        return "**no**", False
    inside = value[0] <= FACTOR * value[1] + FLOOR
    return ("%.0e / %.0e" if inside else "**%.0e / %.0e**") % tuple(value), inside


def plain(message):
    """Returns a message of leat without its status and the path of the file."""
    return re.sub(r"^LEAT_E[A-Z]+: |'[^' ]*/[^' ]*': ", "", str(message))


class Row:
    """The cells of one model, and the messages of what went wrong."""

    def __init__(self, folder):
        self.facts, self.cells, self.notes, self.good = read(os.path.join(folder, "keras.json")), [], [], True
        leat = read(os.path.join(folder, "leat.json"))
        self.judged = judged(folder) if os.path.exists(os.path.join(folder, "leat_changes.npz")) else {}
        self.suffixes = [s for s in (".keras", ".h5") if s in leat]
        self.leat, self.backs = leat, {s: read(os.path.join(folder, "back%s.json" % s)) for s in (".keras", ".h5")}

    def add(self, cell, good, note=None):
        self.cells.append(cell)
        if not good:
            self.good = False
            if note and not isinstance(note, (int, float, list)) and plain(note) not in self.notes:
                self.notes.append(plain(note))

    def fill(self):
        """Fills the cells."""
        first = self.leat[self.suffixes[0]] if self.suffixes else {}
        opened = [self.leat[s].get("opens") is None and s in self.leat for s in self.suffixes]
        self.add(" ".join(s if o else "**%s**" % s for s, o in zip(self.suffixes, opened)) or "not run",
                 all(opened) and opened)
        self.notes += ["%s: %s" % (s, plain(self.leat[s]["opens"])) for s in self.suffixes
                       if self.leat[s].get("opens") and self.leat[s]["opens"] != first.get("opens")]
        if first.get("opens"):
            self.notes.append(plain(first["opens"]))
        for key, limit in (("predict", PREDICTS), ("evaluate", EVALUATES)):
            value = first.get(key, first.get("uncompiled_" + key))
            if key == "predict" and "y" in self.judged and self.judged["y"][1]:
                limit = float("inf")
            cell, good = number(value[0] if isinstance(value, list) else value, limit)
            if isinstance(value, list) and value[1]:
                self.notes.append("leat's evaluation lacks " + ", ".join(value[1]))
            self.add(cell, good, value)
        for key in ("gradient", "update"):
            text, inside = pair(self.judged[key[0]][0]) if key[0] in self.judged else pair(None)
            self.add(text, inside, first.get(key))
        for suffix in (".keras", ".h5"):
            back = self.backs[suffix]
            if not back or back.get("error") == "the process ended":
                written = "writes " + suffix in first and not first["writes " + suffix]
                self.add("not run" if written else "**no**", False, first.get("writes " + suffix) or first.get("saved"))
                self.add("not run" if written else "**no**", False)
                continue
            cell, good = number(back.get("predict"), PREDICTS)
            self.add(cell, good, back.get("error") or first.get("writes " + suffix) or first.get("saved"))
            if back.get("only_predict"):
                self.add("-", True)
            else:
                value = [back["continued"], back["continued_scatter"]] if "continued" in back else None
                self.add(*pair(value), note=back.get("error"))

    def line(self):
        return "| %s | %s | %s |" % (self.facts["name"], self.facts.get("source", ""), " | ".join(self.cells))


HEAD = ("| Model | Source | Opens | Predict | Evaluate | Gradient | 3 steps | `.keras` in Keras | continued | `.h5` in Keras "
        "| continued |\n|" + "---|" * 11)


def main():
    """Prints the table and the messages."""
    rows, notes, unbuilt = [], [], []
    for folder in sorted(glob.glob(os.path.join(sys.argv[1], "*", ""))):
        row = Row(folder)
        if not row.facts:
            continue
        failed = row.facts.get("failed", {})
        if "error" in row.facts or (".h5" in failed and (".keras" in failed or row.facts["keras"].startswith("2."))):
            message = row.facts.get("error") or failed[".h5"]
            unbuilt.append("%s: Keras itself: %s" % (row.facts["name"], " ".join(message.split())[:150]))
            continue
        row.fill()
        rows.append(row)
        notes += ["%s: %s" % (row.facts["name"], n) for n in dict.fromkeys(row.notes)]
    print(HEAD)
    for row in rows:
        print(row.line())
    print()
    print("\n".join(notes + unbuilt))
    print("%d models, %d of them good in every column" % (len(rows), sum(r.good for r in rows)))
    return 0 if all(r.good for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
