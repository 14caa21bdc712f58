# SPDX-License-Identifier: Apache-2.0
"""The table of bench/compare-feed: goals, results, and the limits of the machine."""
import statistics

from table import lines_of, number, ratio

NAMES = {1024: "1 KB", 614400: "600 KB", 4800000: "4.8 MB", 38535168: "38 MB"}
PEERS = ("keras", "torch")
RATIOS = {"rate": {1024: (100, 500), 614400: (50, 20), 4800000: (25, 7), 38535168: (18, 5)},
          "turnover": (2000, 20), "first": (4, 10)}
MAX_TURNOVER_US, MIN_SPEED_UP, MAX_KILL_MS, MAX_TAX_PERCENT = 50, 0.97, 10, 0.2


def median_figure(report, row, program, figure):
    found = [sample[figure] for sample in report["samples"].get(row, {}).get(program, []) if figure in sample]
    return statistics.median(found) if found else None


def row_of(title, unit, values, limit=None, note=""):
    return {"title": title, "unit": unit, "limit": limit, "note": note, "goals": [],
            **{program: values(program) for program in ("leat",) + PEERS}}


def want_ratios(row, goals):
    """Adds goals: leat's figure is to be so many times smaller than each peer's."""
    for peer, goal in zip(PEERS, goals):
        if row[peer] is None or not row["leat"]:
            continue
        reached = row[peer] / row["leat"]
        found = {"against": peer, "goal": goal, "ratio": reached, "met": reached >= goal}
        if row["limit"]:
            found["most_possible"] = row[peer] / row["limit"]
        row["goals"].append(found)
    return row


def want_value(row, sign, goal, unit):
    """Adds a goal: leat's figure is to be at most (<=) or at least (>=) `goal`."""
    met = row["leat"] <= goal if sign == "<=" else row["leat"] >= goal
    row["goals"].append({"against": None, "goal": "%s %.3g%s" % (sign, goal, unit), "value": goal, "met": met})
    return row


def copy_limit(report, payload):
    """Returns the us per batch of two processes that only copy into the slots of a ring."""
    copies = report["limits"]["copy"].get(str(payload))
    return min(copies["two_us"], copies["past_two_us"]) if copies else None


def rate_rows(report, payloads):
    def rate(name):
        return lambda program: median_figure(report, name, program, "us_batch")

    rows = []
    for payload in payloads:
        limit = report["limits"]["bare_ring_us"] if payload <= 4096 else copy_limit(report, payload)
        note = "a bare ring that spins" if payload <= 4096 else "two cores that only copy"
        rows.append(want_ratios(row_of("ready batches of %s, processes" % NAMES[payload], "us",
                                       rate("rate/processes/%d" % payload), limit, note), RATIOS["rate"][payload]))
    for payload in payloads:
        rows.append(row_of("  the same, get copies into the slot: %s" % NAMES[payload], "us",
                           rate("copy/processes/%d" % payload)))
    for payload in payloads:
        rows.append(row_of("ready batches of %s, threads" % NAMES[payload], "us", rate("rate/threads/%d" % payload)))
    return rows


def turnover_rows(report):
    rows = []
    for kind in ("processes", "threads"):
        for name, title in (("rate/%s/1024", "between two passes, %s"), ("hook/%s/1024", "  the same with a hook, %s")):
            row = row_of(title % kind, "us", lambda program: median_figure(
                report, (name if program == "leat" else "rate/%s/1024") % kind, program, "turnover_us"),
                report["limits"]["futex_us"], "there and back by futex")
            if kind == "processes":
                want_ratios(row, RATIOS["turnover"])
            rows.append(want_value(row, "<=", MAX_TURNOVER_US, " us"))
    return rows


def first_rows(report):
    rows = []
    for kind in ("processes", "threads"):
        row = row_of("first batch of 1 KB, %s" % kind, "ms",
                     lambda program: median_figure(report, "first/" + kind, program, "first_ms"),
                     report["limits"]["first_word_ms"] if kind == "processes" else None, "a word through two forks")
        rows.append(want_ratios(row, RATIOS["first"]) if kind == "processes" else row)
    return rows


def work_rows(report, workers):
    def speed_up(kind):
        def of(program):
            one = median_figure(report, "work/%s/1" % kind, program, "us_batch")
            many = median_figure(report, "work/%s/%d" % (kind, workers), program, "us_batch")
            return one / many if one and many else None
        return of

    return [want_value(row_of("5 ms of work: speed-up by %d workers, %s" % (workers, kind), "x", speed_up(kind), workers,
                              "ideal"), ">=", MIN_SPEED_UP * workers, "x")
            for kind in ("processes", "threads")]


def tax_rows(report, payloads, tax_us):
    def tax(name):
        def of(program):
            grown = [sample["step_us"] - sample["alone_us"] for sample in report["samples"].get(name, {}).get(program, [])
                     if sample]
            return 100 * statistics.median(grown) / tax_us if grown else None
        return of

    return [want_value(row_of("tax on 5 ms, %s, %s" % (NAMES[payload], kind), "%", tax("tax/%s/%d" % (kind, payload)),
                              100 * report["limits"]["wake_us"] / tax_us, "a wake-up for each batch"),
                       "<=", MAX_TAX_PERCENT, " %")
            for kind in ("processes", "threads") for payload in payloads]


def rows_of(report, payloads, workers, tax_us):
    rows = rate_rows(report, payloads) + turnover_rows(report) + first_rows(report) + work_rows(report, workers)
    rows.append(want_value(row_of("a worker killed inside get: later by", "ms",
                                  lambda program: median_figure(report, "kill", program, "kill_ms")),
                           "<=", MAX_KILL_MS, " ms"))
    return rows + tax_rows(report, payloads, tax_us)


def verdict(row, peer):
    for goal in row["goals"]:
        if goal["against"] == peer:
            return [ratio(goal["ratio"]), ">= %gx" % goal["goal"], "met" if goal["met"] else "MISSED"]
    return ["%.3gx" % (row[peer] / row["leat"]) if row[peer] and row["leat"] and row["unit"] in ("us", "ms") else "",
            "", ""]


def cells_of(row):
    own = next((goal for goal in row["goals"] if goal["against"] is None), None)
    cells = [row["title"], row["unit"], number(row["leat"]), own["goal"] if own else "",
             ("met" if own["met"] else "MISSED") if own else ""]
    for peer in PEERS:
        cells += [number(row[peer])] + verdict(row, peer)
    return cells + [number(row["limit"]) + " " + row["note"] if row["limit"] else ""]


HEADS = ["", "", "leat", "goal", "", "Keras", "ratio", "goal", "", "PyTorch", "ratio", "goal", "",
         "what the machine allows"]


def text_of(report, markdown):
    table = lines_of(HEADS, [cells_of(row) for row in report["rows"]], markdown, left=(0, 13))
    return "\n".join(table + [""] + missed_lines(report) + [""] + about_lines(report))


def missed_lines(report):
    found = []
    for row in report["rows"]:
        for goal in row["goals"]:
            if goal["met"]:
                continue
            text = "missed: %s" % row["title"].strip()
            if goal["against"]:
                text += ": %.3gx of %gx against %s" % (goal["ratio"], goal["goal"], goal["against"])
            else:
                text += ": %s %s of %s" % (number(row["leat"]), row["unit"], goal["goal"])
            if goal.get("most_possible"):
                text += "; %s (%s us) would be %.3gx" % (row["note"], number(row["limit"]), goal["most_possible"]) \
                    if row["unit"] == "us" else "; %s takes %s %s" % (row["note"], number(row["limit"]), row["unit"])
            elif row["limit"]:
                text += "; %s: %s %s" % (row["note"], number(row["limit"]), row["unit"])
            found.append(text)
    wanted = sum(len(row["goals"]) for row in report["rows"])
    return ["%d of %d goals met" % (wanted - len(found), wanted)] + found


def about_lines(report):
    limits, programs = report["limits"], report["programs"]
    lines = ["%(cpu)s, %(cores)d cores, Linux %(kernel)s" % dict({"cpu": report["machine"]["machine"]},
                                                              **report["machine"])]
    for name in ("leat",) + PEERS:
        if name in programs:
            lines.append("%s: %s" % (name, ", ".join("%s %s" % pair for pair in programs[name].items()
                                                     if pair[0] != "settings")))
    for payload, copy in limits["copy"].items():
        lines.append("copying %s: %s us by one core (%.1f GB/s), %s by two (%.1f); past the caches %s and %s" % (
            NAMES.get(int(payload), payload), number(copy["one_us"]), int(payload) / 1e3 / copy["one_us"],
            number(copy["two_us"]), int(payload) / 1e3 / copy["two_us"], number(copy["past_one_us"]),
            number(copy["past_two_us"])))
    lines.append("there and back between processes: %s us by futex (%s on one core), %s by spinning; waking a sleeper costs "
                 "%s us" % tuple(number(limits[key]) for key in ("futex_us", "futex_one_core_us", "spin_us", "wake_us")))
    alone = [sample["alone_us"] for row, who in report["samples"].items() if row.startswith("tax/")
             for sample in who["leat"]]
    lines.append("5 ms of computing with nothing beside it took %.3f ms (median), %.3f at most" %
                 (statistics.median(alone) / 1e3, max(alone) / 1e3))
    lines.append("load average before and after each round (this program's own included): %s" %
                 ", ".join("%.2f" % load[0] for load in report["load_averages"]))
    lines.append("%d worker(s), medians of %d rounds, %.0f s in all, %s" % (report["workers"], report["rounds"],
                                                                       report["seconds"], report["when"]))
    return lines
