#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures leat.Feed in Python beside PyTorch's DataLoader, torchdata's StatefulDataLoader and Keras 3's PyDataset.

    bench/peers/setup torch keras3           once: the peers' environments, under build
    cmake --preset release -DLEAT_PYTHON=ON && cmake --build --preset release --target leat_python
    bench/python_feed.py [--rounds 3] [--json FILE] [--rows 38MB,first ...] [--photographs FOLDER]

The loaders take turns, each in a process of its own; figures are medians of the rounds.  All have two worker processes
and the same data set, whose batches are NumPy arrays that exist already.  A loader that is not installed is left out,
with a message.  bench/README.md describes the rows."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
PAYLOADS = {"1KB": (1024, 4000), "600KB": (614400, 600), "4.8MB": (4800000, 120), "38MB": (38535168, 36)}
GOALS = {  # row: {peer: how many times as fast as the peer leat shall be}
    "1KB": {"torch": 30, "keras": 20},
    "600KB": {"torch": 10, "keras": 20},
    "4.8MB": {"torch": 5, "keras": 15},
    "38MB": {"torch": 4, "keras": 10},
    "passes": {"torch-fresh": 50, "torch": 1},
    "images": {"torch": 1.5, "stateful": 1.5},
}
UNITS = {"first": "ms", "passes": "ms", "leave": "ms", "killed": "ms", "scaling": "x", "memory": "%", "images": "ms"}
PATIENCE = 20  # seconds after which a measurement ends with the batches that it has seen
PICTURES_OF_A_BATCH = 32
LOADERS = ("leat", "torch", "torch-fresh", "stateful", "keras")


# ---- data ----


class Ready:
    """Batches that exist already: making one costs nothing."""

    def __init__(self, payload, count):
        import numpy

        self.x = numpy.ones(payload // 4, numpy.float32)
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if index >= self.count:
            raise IndexError(index)
        return self.x


class Working(Ready):
    """5 ms of pure Python for each batch."""

    def __getitem__(self, index):
        end = time.thread_time() + 0.005
        while time.thread_time() < end:
            sum(range(100))
        return super().__getitem__(index)


class Killed(Ready):
    """Batch 40 takes 50 ms, and ends its worker the first time."""

    def __init__(self, payload, count, marker):
        super().__init__(payload, count)
        self.marker = marker

    def __getitem__(self, index):
        if index == 40:
            time.sleep(0.05)
            if self.marker and not os.path.exists(self.marker):
                with open(self.marker, "w") as file:
                    file.write(repr(time.monotonic()))
                os.kill(os.getpid(), 9)
        return super().__getitem__(index)


class Objects(Ready):
    """A million Python objects; each batch looks at some of them."""

    def __init__(self):
        super().__init__(4096, 1000)
        self.names = [f"picture {i}" for i in range(1000000)]

    def __getitem__(self, index):
        for name in self.names[index * 1000 : index * 1000 + 1000]:
            len(name)
        return self.x


class Photographs:
    """JPEGs in a folder for each class, as torch.utils.data wants them; Pillow decodes and resizes them."""

    def __init__(self, folder):
        self.paths = sorted(
            (os.path.join(folder, label, name), number)
            for number, label in enumerate(sorted(os.listdir(folder)))
            for name in os.listdir(os.path.join(folder, label))
        )

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        import numpy
        from PIL import Image

        path, label = self.paths[index]
        with Image.open(path) as image:
            return numpy.array(image.convert("RGB").resize((224, 224), Image.BILINEAR)), label


# ---- loaders ----


class Leat:
    def __init__(self, data, workers=2, queue=10, **_):
        import leat

        self.feed = leat.Feed(data, workers=workers, max_queue_size=queue, seed=1)

    def run_pass(self):
        return iter(self.feed)

    def close(self):
        self.feed.close()


class Torch:
    persistent = True

    def __init__(self, data, workers=2, queue=10, **_):
        import torch

        torch.set_num_threads(1)
        self.loader = self.load(
            data,
            batch_size=None,
            num_workers=workers,
            persistent_workers=self.persistent,
            prefetch_factor=queue // workers,
        )

    @staticmethod
    def load(*arguments, **named):
        from torch.utils.data import DataLoader

        return DataLoader(*arguments, **named)

    def run_pass(self):
        return iter(self.loader)

    def close(self):
        self.loader = None


class TorchFresh(Torch):
    persistent = False


class Stateful(Torch):
    @staticmethod
    def load(*arguments, **named):
        from torchdata.stateful_dataloader import StatefulDataLoader

        return StatefulDataLoader(*arguments, **named)


class Keras:
    """As model.fit reads a PyDataset, but without the conversion to tensors."""

    def __init__(self, data, workers=2, queue=10, **_):
        from keras.src.trainers.data_adapters.py_dataset_adapter import OrderedEnqueuer
        from keras.utils import PyDataset

        class Own(PyDataset):
            def __len__(self):
                return len(data)

            def __getitem__(self, index):
                return data[index]

        self.length = len(data)
        own = Own(workers=workers, use_multiprocessing=True, max_queue_size=queue)
        self.enqueuer = OrderedEnqueuer(own, workers, True, queue)

    def run_pass(self):
        self.enqueuer.start()  # as its adapter does in on_epoch_begin
        batches = self.enqueuer.get()
        for _ in range(self.length):
            yield next(batches)
        self.enqueuer.stop()

    def close(self):
        pass


CLASSES = {"leat": Leat, "torch": Torch, "torch-fresh": TorchFresh, "stateful": Stateful, "keras": Keras}


# ---- measurements, in a process of their own ----


def time_batches(loader, passes):
    """Returns the us per batch from the first batch of each pass to its last one; slow loaders deliver fewer batches."""
    taken, elapsed, limit = 0, 0.0, time.perf_counter() + PATIENCE
    for _ in range(passes):
        begun = now = None
        for _ in loader.run_pass():
            now = time.perf_counter()
            if begun is None:
                begun = now
                continue
            taken += 1
            if now > limit and taken >= 8:
                break
        elapsed += now - begun
        if now > limit:
            return {"us": elapsed / taken * 1e6, "batches": taken}
    loader.close()
    return {"us": elapsed / taken * 1e6, "batches": taken}


def measure_payload(make, row, queue):
    """Returns the us per batch after the first pass."""
    payload, count = PAYLOADS[row]
    count = max(12, count // {Leat: 1, Keras: 16}.get(make, 8))  # The peers take long for each batch.
    loader = make(Ready(payload, count), queue=queue)
    for _ in loader.run_pass():
        pass
    return time_batches(loader, 3)


def measure_images(make, row, queue):
    """Returns the us per batch of a training loop of torch over a folder of JPEGs, with a small convolutional network."""
    import torch

    torch.set_num_threads(1)
    folder = os.environ["LEAT_PHOTOGRAPHS"]
    if make is Leat:
        import leat

        source = leat.source(f"images:{folder}?size=224x224", batch_size=PICTURES_OF_A_BATCH)
        loader = leat.Feed(source, workers=2, shuffle=True, seed=1)
    else:
        loader = make.load(
            Photographs(folder), batch_size=PICTURES_OF_A_BATCH, shuffle=True, num_workers=2, persistent_workers=True
        )
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 7, stride=8), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(4), torch.nn.Flatten(),
        torch.nn.Linear(128, 4),
    )
    optimizer = torch.optim.SGD(model.parameters(), 0.01)

    class Training:
        def run_pass(self):
            for x, y in loader:
                x, y = torch.as_tensor(x), torch.as_tensor(y).reshape(-1)
                values = x.permute(0, 3, 1, 2).float() / 255
                loss = torch.nn.functional.cross_entropy(model(values), y.long())
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                yield loss.item()

        def close(self):
            if make is Leat:
                loader.close()
                source.close()

    for _ in Training().run_pass():
        pass
    return time_batches(Training(), 3)


def measure_consumer(make, row, queue):
    """Returns the us that taking a batch costs that is ready."""
    loader = make(Ready(1024, 3000), queue=200)
    times = []
    batches = loader.run_pass()
    next(batches)
    for _ in range(10):
        time.sleep(0.3)
        start = time.perf_counter()
        for _ in range(80):
            batch = next(batches)
        times.append((time.perf_counter() - start) / 80 * 1e6)
        del batch
    for _ in batches:
        pass
    loader.close()
    return {"us": statistics.median(times)}


def import_all(make):
    """Imports what the loader needs: a program has done that when it opens a loader."""
    import importlib

    names = {Leat: "leat.feed", Stateful: "torchdata.stateful_dataloader", Keras: "keras"}
    for name in ("numpy", names.get(make, "torch")):
        importlib.import_module(name)


def measure_first(make, row, queue):
    import_all(make)
    start = time.perf_counter()
    loader = make(Ready(4096, 100))
    batches = loader.run_pass()
    next(batches)
    figures = {"us": (time.perf_counter() - start) * 1e6}
    for _ in batches:
        pass
    loader.close()
    return figures


def measure_passes(make, row, queue):
    loader = make(Ready(4096, 100))
    times, end = [], None
    for _ in range(8):
        for batch in loader.run_pass():
            if end is not None:
                times.append(time.perf_counter() - end)
                end = None
            time.sleep(0.0005)
        end = time.perf_counter()
    loader.close()
    return {"us": statistics.median(times) * 1e6}


def measure_leave(make, row, queue):
    """Returns the us from leaving a loop early to the first batch of the next one."""
    loader = make(Ready(4096, 100))
    times, left = [], None
    for _ in range(6):
        for number, batch in enumerate(loader.run_pass()):
            if left is not None:
                times.append(time.perf_counter() - left)
                left = None
            if number == 20:
                break
        left = time.perf_counter()
    loader.close()
    return {"us": statistics.median(times) * 1e6}


def measure_killed(make, row, queue):
    """Returns the us from a worker's death in a batch of 50 ms to the batch, beyond these 50 ms."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        marker = os.path.join(folder, "marker")
        loader = make(Killed(4096, 60, marker))
        for number, _ in enumerate(loader.run_pass()):
            if number == 40:
                arrived = time.monotonic()
        with open(marker) as file:
            died = float(file.read())
        loader.close()
    return {"us": (arrived - died - 0.05) * 1e6}


def measure_scaling(make, row, queue):
    def run(workers):
        loader = make(Working(4096, 100), workers=workers, queue=8)
        for _ in loader.run_pass():
            pass
        start = time.perf_counter()
        for _ in loader.run_pass():
            pass
        elapsed = time.perf_counter() - start
        loader.close()
        return elapsed

    return {"value": run(1) / run(2)}


def private_bytes(pid):
    with open(f"/proc/{pid}/smaps_rollup") as file:
        return sum(int(line.split()[1]) << 10 for line in file if line.startswith(("Private_Clean", "Private_Dirty")))


def descendants(pid):
    listed = subprocess.run(["ps", "-e", "-o", "pid=,ppid="], capture_output=True, text=True).stdout.split()
    parents = dict(zip(map(int, listed[::2]), map(int, listed[1::2])))
    found, wave = [], [pid]
    while wave:
        wave = [child for child, parent in parents.items() if parent in wave]
        found += wave
    return [child for child in found if os.path.exists(f"/proc/{child}/smaps_rollup")]


def measure_memory(make, row, queue):
    """Returns by how many percent the workers' private memory grows in one pass, of what the objects need."""
    data = Objects()
    base = private_bytes(os.getpid())
    loader = make(data, workers=4, queue=8)
    batches = loader.run_pass()
    for _ in range(8):
        next(batches)
    before = sum(map(private_bytes, descendants(os.getpid())))
    for number, _ in enumerate(batches):
        if number == 980:
            after = sum(map(private_bytes, descendants(os.getpid())))
    loader.close()
    return {"value": (after - before) / base * 100}


MEASURES = {
    **dict.fromkeys(PAYLOADS, measure_payload),
    "consumer": measure_consumer,
    "first": measure_first,
    "passes": measure_passes,
    "leave": measure_leave,
    "killed": measure_killed,
    "scaling": measure_scaling,
    "memory": measure_memory,
    "images": measure_images,
}


def measure_one(loader, row, queue):
    sys.path.insert(0, HERE)
    import python_feed  # so that workers of another interpreter find the classes

    figures = python_feed.MEASURES[row](python_feed.CLASSES[loader], row, queue)
    print(json.dumps(figures), flush=True)
    os._exit(0)  # Some loaders need long for their end.


# ---- limits ----


def _copy_for_ever(payload, seconds):
    """Copies one array into another one again and again; prints the us of a copy."""
    import mmap

    import numpy

    x = numpy.ones(payload // 4, numpy.float32)
    shared = mmap.mmap(-1, 12 * payload)
    slots = numpy.frombuffer(shared, numpy.float32).reshape(12, -1)
    slots[:] = 0
    count, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        numpy.copyto(slots[count % 12], x)
        count += 1
    print(json.dumps((time.perf_counter() - start) / count * 1e6))


def measure_limit(python, payload):
    """Returns the us per batch of two processes that do nothing but copy batches into shared memory."""
    words = [python, __file__, "--copy", str(payload)]
    running = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    return 1 / sum(1 / float(process.communicate()[0]) for process in running)


def measure_interpreter(python):
    """Returns the us that an interpreter takes that imports NumPy and ends."""
    start = time.perf_counter()
    subprocess.run([python, "-c", "import numpy"], check=True)
    return (time.perf_counter() - start) * 1e6


# ---- the table ----


def find_pythons():
    """Returns the interpreter of each loader that is installed, and the environment of each."""
    peers = [os.path.join(ROOT, "build", name) for name in ("peers/torch", "keras3")]
    torch, keras = (os.environ.get(name, os.path.join(home, "bin", "python")) for name, home in
                    zip(("LEAT_TORCH_PYTHON", "LEAT_KERAS_PYTHON"), peers))
    data = os.path.join(ROOT, "build", "peers", "torchdata")
    found = {}
    for name, python, module in (("leat", torch, "leat"), ("torch", torch, "torch"), ("torch-fresh", torch, "torch"),
                                 ("stateful", torch, "torchdata.stateful_dataloader"), ("keras", keras, "keras")):
        places = [os.path.join(ROOT, "build", "release", "python"), data]
        environment = dict(os.environ, PYTHONPATH=os.pathsep.join(places), TF_CPP_MIN_LOG_LEVEL="3")
        if name == "leat" and not os.path.exists(python):
            python = sys.executable
        words = [python, "-c", f"import {module}"]
        try:
            subprocess.run(words, env=environment, check=True, capture_output=True)
            found[name] = python, environment
        except (OSError, subprocess.CalledProcessError):
            print(f"{name} is left out: {' '.join(words)} failed", file=sys.stderr)
    return found


def ask(python, environment, loader, row, queue):
    words = [python, __file__, "--one", loader, row, "--queue", str(queue)]
    try:
        done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=180)
    except subprocess.TimeoutExpired:
        return {"failed": "it hung for 180 s"}
    try:
        return json.loads(done.stdout.strip().splitlines()[-1])
    except (IndexError, ValueError):
        return {"failed": (done.stderr.strip().splitlines() or ["it ended"])[-1][:100]}


def choose_loaders(row, found):
    skipped = {"killed": ("torch-fresh", "stateful", "keras"), "consumer": ("torch-fresh", "stateful")}.get(row, ())
    if row in PAYLOADS:
        skipped = ("torch-fresh",)
    if row in ("leave", "images"):
        skipped = ("keras",) if row == "leave" else ("keras", "torch-fresh")
    return [loader for loader in LOADERS if loader in found and loader not in skipped]


def gather(rows, rounds, found):
    """Measures all rows and returns {(row, loader, queue): [figures]}; Ctrl-C ends it with what is known."""
    seen = {}
    try:
        run_rounds(rows, rounds, found, seen)
    except KeyboardInterrupt:
        print("interrupted: the table has what was measured so far", file=sys.stderr)
    return seen


def run_rounds(rows, rounds, found, seen):
    for number in range(rounds):
        for row in rows:
            for loader in choose_loaders(row, found):
                # Each at its best: large batches are faster in a ring that stays in the caches.
                for queue in (10, 4) if row in ("4.8MB", "38MB") else (10,):
                    figures = ask(*found[loader], loader, row, queue)
                    seen.setdefault((row, loader, queue), []).append(figures)
            if row in PAYLOADS:
                limit = measure_limit(found["leat"][0], PAYLOADS[row][0])
                seen.setdefault((row, "limit", 10), []).append({"us": limit})
            if row == "first":
                seen.setdefault((row, "limit", 10), []).append({"us": measure_interpreter(found["leat"][0])})
            print(f"round {number + 1}: {row} is done, load {os.getloadavg()[0]:.1f}", file=sys.stderr, flush=True)


def summarize(seen):
    """Returns {row: {loader: (figure, its queue)}} with the best queue of each loader."""
    table = {}
    for (row, loader, queue), all_figures in seen.items():
        values = [figures.get("us", figures.get("value")) for figures in all_figures if "failed" not in figures]
        row_of = table.setdefault(row, {})
        if not values:
            row_of.setdefault(loader, (None, all_figures[0]["failed"]))
            continue
        best = statistics.median(values)
        if loader not in row_of or row_of[loader][0] is None or best < row_of[loader][0]:
            row_of[loader] = (best, queue)
    return table


def show(row, value):
    if value is None:
        return "fails"
    unit = UNITS.get(row, "us")
    return f"{value / 1000 if unit == 'ms' else value:.3g}"


def print_table(table):
    loaders = [name for name in (*LOADERS, "limit") if any(name in row for row in table.values())]
    print("| row |  | " + " | ".join(loaders) + " | goals |")
    print("|---|---|" + "---|" * (len(loaders) + 1))
    for row, figures in table.items():
        own = figures.get("leat", (None,))[0]
        cells, goals = [], []
        for loader in loaders:
            value = figures[loader][0] if loader in figures else None
            cell = show(row, value) if loader in figures else ""
            if value and own and loader != "leat" and UNITS.get(row) not in ("x", "%"):
                ratio = value / own
                cell += f" ({ratio:.3g}x)"
                goal = GOALS.get(row, {}).get(loader)
                if goal:
                    goals.append(f"{loader} {ratio:.3g}x of {goal}x {'met' if ratio >= goal else 'MISSED'}")
            cells.append(cell)
        print(f"| {row} | {UNITS.get(row, 'us')} | " + " | ".join(cells) + " | " + "; ".join(goals) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", default=",".join(MEASURES))
    parser.add_argument("--loaders", default=",".join(LOADERS))
    parser.add_argument("--json")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--copy", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--queue", type=int, default=10, help=argparse.SUPPRESS)
    parser.add_argument("--photographs", help="for the row images: a folder of JPEGs for each class, bench/photographs")
    options = parser.parse_args()
    if options.photographs:
        os.environ["LEAT_PHOTOGRAPHS"] = os.path.abspath(options.photographs)
    elif not options.one:
        options.rows = ",".join(row for row in options.rows.split(",") if row != "images")
    if options.one:
        measure_one(*options.one, options.queue)
    if options.copy:
        _copy_for_ever(options.copy, 1)
        return
    found = {name: place for name, place in find_pythons().items() if name in options.loaders.split(",")}
    seen = gather(options.rows.split(","), options.rounds, found)
    if options.json:
        with open(options.json, "w") as file:
            json.dump([[*key, figures] for key, figures in seen.items()], file)
    print_table(summarize(seen))


if __name__ == "__main__":
    main()
