# SPDX-License-Identifier: Apache-2.0
"""What a feed shows of itself: a progress display while its batches are taken, and a report for notebooks."""

import html
import os
import shutil
import sys
import time

_WIDTH = 30  # columns of the bar


def _find_notebook():
    """Returns IPython's display module in a notebook, otherwise None."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None and hasattr(ipython, "get_ipython") else None
    if shell is None or type(shell).__name__ != "ZMQInteractiveShell":
        return None
    from IPython import display

    return display


def _format_rate(rate):
    return f"{rate:.0f}/s" if rate >= 10 else f"{rate:.2g}/s" if rate >= 1 or rate == 0 else f"{1 / rate:.2g} s each"


class _Line:
    """One line of text that changes: on a terminal, or in a notebook."""

    def __init__(self, file):
        self.file = file if file is not None else sys.stderr
        self.notebook = _find_notebook() if file is None else None
        self.live = self.notebook is not None or bool(getattr(self.file, "isatty", lambda: False)())
        self.handle = None

    def show(self, text, end=False):
        if self.notebook is not None:
            markup = self.notebook.HTML(f"<pre>{html.escape(text)}</pre>")
            if self.handle is None:
                self.handle = self.notebook.display(markup, display_id=True)
            else:
                self.handle.update(markup)
        elif self.live:
            columns = shutil.get_terminal_size().columns - 1
            self.file.write("\r" + text[:columns].ljust(columns) + ("\n" if end else ""))
            self.file.flush()
        elif end:  # A file or a pipe gets the last state alone.
            self.file.write(text + "\n")
            self.file.flush()


def _describe(done, total, waited, elapsed):
    share = min(1.0, waited / elapsed) if elapsed > 0 else 0.0
    rate = done / elapsed if elapsed > 0 else 0.0
    figures = f"{_format_rate(rate)}, waiting {100 * share:.0f} %"
    if not total:
        return f"batch {done}  {figures}"
    filled = _WIDTH * done // total
    left = (total - done) * elapsed / done if done else 0
    return f"batch {done}/{total} [{'#' * filled}{'.' * (_WIDTH - filled)}] {figures}, {left:.0f} s left"


def progress(feed, file=None, every=0.1):
    """Iterates over one pass of a feed, and shows how far it is, the rate, and the share of time spent waiting.

        for batch in leat.progress(feed):
            step(batch)

    It draws a bar on a terminal or in a notebook; elsewhere it writes one line at the end.  file: default sys.stderr.
    every: seconds between two updates.
    """
    line = _Line(file)
    try:
        total = len(feed) - feed.state_dict()["batch"] % len(feed)
    except Exception:  # An iterable has no length.
        total = 0
    begin, waited_before = time.perf_counter(), feed.stats()["wait_ns"]
    drawn, done = begin, 0

    def describe():
        return _describe(done, total, (feed.stats()["wait_ns"] - waited_before) / 1e9, time.perf_counter() - begin)

    try:
        for batch in feed:
            yield batch
            done += 1
            now = time.perf_counter()
            if line.live and now - drawn >= every:
                line.show(describe())
                drawn = now
    finally:
        if feed.is_open:
            line.show(describe(), end=True)


# ---- the memory of worker processes ----

_LEAST_PRIVATE = 64 << 20  # bytes; less is no reason for an advice


def _read_children(pid):
    found = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children") as file:
                found += [int(word) for word in file.read().split()]
    except OSError:
        pass  # The process has ended.
    return found


def _read_memory(pid):
    """Returns (bytes that no other process has, anonymous bytes) of a process; zeros if it has ended."""
    private = anonymous = 0
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            for line in file:
                if line.startswith(("Private_Clean:", "Private_Dirty:")):
                    private += int(line.split()[1]) << 10
                elif line.startswith("Anonymous:"):
                    anonymous += int(line.split()[1]) << 10
    except OSError:
        pass
    return private, anonymous


def _is_helper(pid):
    try:
        with open(f"/proc/{pid}/comm") as file:
            return file.read() == "leat-helper\n"
    except OSError:
        return False


def measure_memory():
    """Returns (bytes that the worker processes have for themselves, bytes that they were forked with, their number).

    The numbers are of all feeds of this process.
    """
    private = inherited = count = 0
    for helper in filter(_is_helper, _read_children(os.getpid())):
        workers = _read_children(helper)
        count += len(workers)
        inherited += _read_memory(helper)[1]
        private += sum(_read_memory(pid)[0] for pid in workers)
    return private, inherited, count


def advise_on_memory(feed):
    """Returns a sentence if reading the data seems to copy its objects into the workers, otherwise ""."""
    if feed.kind not in ("process", "fork") or (feed.kind == "process" and _shares_objects(feed)):
        return ""
    private, inherited, count = measure_memory()
    if private < _LEAST_PRIVATE or private < inherited / 2:
        return ""
    other = "use Python 3.12 or later" if sys.version_info < (3, 12) else "use kind='process' and no on_epoch_end"
    return (
        f" The {count} worker processes have {private / 1e6:.0f} MB for themselves, and were forked with"
        f" {inherited / 1e6:.0f} MB: Python counts references inside of each object, so a worker that reads objects"
        f" receives copies of them. Keep such data in arrays instead of lists, {other}, or set max_worker_rss."
    )


def _shares_objects(feed):
    """Returns True if the helper makes the data's objects immortal."""
    from leat import _helper

    return _helper.can_be_immortal() and feed._source.is_constant


# ---- HTML ----


def _bar(share):
    """Returns an inline picture of the share of the time that the caller waited."""
    width, height = 320, 18
    waited = round(width * share)
    return (
        f'<svg width="{width}" height="{height}" role="img" aria-label="{100 * share:.0f} % waiting">'
        f'<rect width="{width}" height="{height}" fill="#2a7f62"/>'
        f'<rect width="{waited}" height="{height}" fill="#c0392b"/>'
        f"<title>red: waiting for data, green: everything else</title></svg>"
    )


def make_html(feed):
    """Returns a feed's verdict and its figures as HTML."""
    if not feed.is_open:
        return f"<pre>{html.escape(repr(feed))}</pre>"
    stats, share = feed.stats(), feed.waiting()
    rows = [
        ("batches", f"{stats['batches']:,}"),
        ("bytes", f"{stats['bytes']:,}"),
        ("workers", f"{stats['workers']} ({feed.kind})"),
        ("ready now", f"{stats['ready']} of {stats['max_queue_size']}"),
        ("making a batch, median / 99 %", f"{stats['get'][0] / 1e6:.3g} / {stats['get'][2] / 1e6:.3g} ms"),
        ("waiting for a batch, median / 99 %", f"{stats['wait'][0] / 1e6:.3g} / {stats['wait'][2] / 1e6:.3g} ms"),
        ("memory of the ring", f"{stats['ring_bytes'] / 1e6:.1f} MB"),
        ("copied", f"{stats['copied']:,}"),
        ("memory of the workers' own", f"{measure_memory()[0] / 1e6:.1f} MB"),
        ("deaths, late, replaced", f"{stats['worker_deaths']}, {stats['timeouts']}, {stats['replaced']}"),
        ("retries, skipped", f"{stats['retries']}, {stats['skips']}"),
    ]
    table = "".join(f"<tr><th>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>" for name, value in rows)
    return (
        f"<div><b>{html.escape(repr(feed))}</b><p>{html.escape(feed.verdict())}</p>{_bar(share)}"
        f"<table>{table}</table></div>"
    )
