#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the results of tools/coverage by room, and writes the functions that no test has called to never-run.txt.

usage: tools/coverage_table.py BUILD-FOLDER     with gcovr's coverage.json and a .gcda beside each object file
"""
import collections
import gzip
import json
import pathlib
import subprocess
import sys
import tempfile


def room(path):
    parts = pathlib.PurePath(path).parts
    return "/".join(parts[1:3] if parts[1] == "backends" else parts[1:2])


def lines_and_branches(build):
    table = collections.defaultdict(lambda: [0, 0, 0, 0])
    for file in json.loads((build / "coverage.json").read_text())["files"]:
        row = table[room(file["file"])]
        for line in file["lines"]:
            if line.get("gcovr/noncode"):
                continue
            row[0] += line["count"] > 0
            row[1] += 1
            row[2] += sum(branch["count"] > 0 for branch in line["branches"])
            row[3] += len(line["branches"])
    return table


def functions(build):
    """Returns the number of calls of each function, (file, line, name) -> count, over all objects that contain it."""
    calls = collections.Counter()
    source = build.parent.parent
    with tempfile.TemporaryDirectory() as scratch:
        for data in sorted((build / "src").rglob("*.gcno")):
            subprocess.run(["gcov", "--json-format", "--object-directory", str(data.parent), str(data)], cwd=scratch,
                           capture_output=True, check=False)
            for report in pathlib.Path(scratch).glob("*.gcov.json.gz"):
                for file in json.loads(gzip.decompress(report.read_bytes()))["files"]:
                    path = (build / file["file"]).resolve()
                    if source / "src" not in path.parents:
                        continue
                    for function in file["functions"]:
                        where = (str(path.relative_to(source)), function["start_line"], function["name"])
                        calls[where] += function["execution_count"]
                report.unlink()
    return calls


def percent(part, whole):
    return f"{100 * part / whole:6.1f} %" if whole else "      - "


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    table, calls = lines_and_branches(build), functions(build)
    called = collections.defaultdict(lambda: [0, 0])
    for (file, _, _), count in calls.items():
        called[room(file)][0] += count > 0
        called[room(file)][1] += 1
    total = [0] * 6
    print(f"{'room':20}{'lines':>10}{'branches':>10}{'functions':>10}")
    for name in sorted(table):
        row = table[name] + called[name]
        total = [a + b for a, b in zip(total, row)]
        print(f"{name:20}  {percent(*row[:2])}  {percent(*row[2:4])}  {percent(*row[4:])}")
    print(f"{'all':20}  {percent(*total[:2])}  {percent(*total[2:4])}  {percent(*total[4:])}")
    never = [where for where in sorted(calls) if calls[where] == 0]
    (build / "never-run.txt").write_text("".join(f"{file}:{line}: {name}\n" for file, line, name in never))
    print(f"\n{len(never)} of {len(calls)} functions were never called: {build / 'never-run.txt'}")


main()
