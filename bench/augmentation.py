#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures augmentation in `images:` beside torchvision v2 and Keras 2.3.1's ImageDataGenerator.

    bench/augmentation.py BUILD FOLDER [--keras231 PYTHON] [--rounds 3] [--workers 2]

BUILD is a folder with `leat` and `libleat.so`; FOLDER has JPEGs, such as bench/pictures.py make writes.  All programs decode
and resize to 224x224 RGB, flip, rotate by up to 15 degrees, zoom by up to 10 % and change the brightness by up to 20 %, in
batches of 64, and take turns in each round; the figures are median pictures per second and the least CPU time (cpu_time.py).  --keras231 names a Python with
Keras 2.3.1, whose OrderedEnqueuer has as many processes.  `augmenting alone` leaves out reading and decoding: one picture in
memory, one core, microseconds of CPU time for each.  Needs NumPy, Pillow, PyTorch and torchvision.
"""

import argparse
import pathlib
import subprocess
import sys
import time

import cpu_time
import numpy as np
from PIL import Image

SIZE, BATCH = (224, 224), 64


class Pictures:
    """A data set as torch.utils.data wants it."""

    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        with Image.open(self.paths[index]) as image:
            return np.array(image.convert("RGB").resize(SIZE, Image.BILINEAR)), index % 4


class Augmented(Pictures):
    """The data set with torchvision's transforms."""

    def __init__(self, paths):
        super().__init__(paths)
        from torchvision.transforms import v2
        self.transform = v2.Compose([
            v2.RandomHorizontalFlip(),
            v2.RandomAffine(15, scale=(0.9, 1.1), interpolation=v2.InterpolationMode.BILINEAR),
            v2.ColorJitter(brightness=0.2)])

    def __getitem__(self, index):
        import torch
        picture, label = super().__getitem__(index)
        return self.transform(torch.from_numpy(picture).permute(2, 0, 1)), label


def run_torch(paths, workers):
    import torch
    from torch.utils.data import DataLoader
    torch.set_num_threads(1)
    loader = DataLoader(Augmented(paths), batch_size=BATCH, num_workers=workers, persistent_workers=True)
    return cpu_time.measure(loader, len(paths))


KERAS = """
import sys, time
import numpy as np
from keras_preprocessing.image import ImageDataGenerator
folder, count, workers, alone = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "alone"
sys.path.insert(0, sys.argv[5])
import cpu_time
generator = ImageDataGenerator(horizontal_flip=True, rotation_range=15, zoom_range=0.1, brightness_range=(0.8, 1.2))
if alone:
    picture = np.random.RandomState(0).randint(0, 256, (224, 224, 3)).astype("float32")
    start = time.process_time()
    for _ in range(100):
        generator.random_transform(picture)
    print((time.process_time() - start) / 100)
    sys.exit()
import keras
flow = generator.flow_from_directory(folder, (224, 224), batch_size=64, interpolation="bilinear", seed=1)
queue = keras.utils.OrderedEnqueuer(flow, use_multiprocessing=True)
queue.start(workers=workers, max_queue_size=2)
batches = queue.get()
for _ in range(4):
    next(batches)
cpu, start, seen = cpu_time.used(), time.perf_counter(), 0
while seen < count:
    seen += len(next(batches)[0])
print(seen / (time.perf_counter() - start), 1e6 * (cpu_time.used() - cpu) / seen, flush=True)
queue.stop()
"""

AUGMENT = "&augment=flip,rotate(15),zoom(0.1),brightness(0.2)"


def run_keras(python, folder, count, workers, what="feed"):
    command = [python, "-c", KERAS, str(folder), str(count), str(workers), what, str(pathlib.Path(__file__).parent)]
    out = subprocess.run(command, capture_output=True, text=True, check=True, timeout=200).stdout
    return tuple(float(word) for word in out.splitlines()[-1].split())


def augment_torch(count):
    import torch
    torch.set_num_threads(1)
    picture = torch.randint(0, 256, (3, 224, 224), dtype=torch.uint8)
    transform = Augmented([]).transform
    start = time.process_time()
    for _ in range(count):
        transform(picture)
    return (time.process_time() - start) / count


def augment_leat(library, count):
    """Calls leat_augment_apply (leat/picture.h) of a libleat.so."""
    import ctypes
    leat = ctypes.CDLL(library)
    rng, augment = (ctypes.c_uint64 * 16)(), ctypes.c_void_p()
    leat.leat_rng_for_into(ctypes.c_uint64(1), ctypes.c_uint64(0), ctypes.c_uint64(0), rng)
    steps = AUGMENT.split("=", 1)[1].encode()
    sides = [ctypes.c_int64(n) for n in (224, 224, 3)]
    if leat.leat_augment_create(ctypes.byref(augment), steps, *sides, None):
        raise RuntimeError("leat_augment_create failed")
    source = (ctypes.c_ubyte * (224 * 224 * 3)).from_buffer(bytearray(np.random.default_rng(0).bytes(224 * 224 * 3)))
    result = (ctypes.c_ubyte * (224 * 224 * 3))()
    start = time.process_time()
    for i in range(count):
        leat.leat_augment_apply(augment, rng, ctypes.c_int64(i), source, result, None)
    return (time.process_time() - start) / count


def run_leat(leat, folder, count, workers, options=""):
    spec = f"images:{folder}?size={SIZE[0]}x{SIZE[1]}{options}"
    return cpu_time.run_leat(leat, spec, count, workers, BATCH, 2)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("folder")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--keras231", help="a Python with Keras 2.3.1")
    arguments = parser.parse_args()
    folder, workers, keras = pathlib.Path(arguments.folder), arguments.workers, arguments.keras231
    leat = f"{arguments.build}/leat"
    paths = sorted(folder.rglob("*.jpg"))
    runs = {
        "leat": lambda: run_leat(leat, folder, len(paths), workers, AUGMENT),
        "leat, not augmented": lambda: run_leat(leat, folder, len(paths), workers),
        "torchvision v2": lambda: run_torch(paths, workers),
    }
    alone = {
        "leat": lambda: augment_leat(f"{arguments.build}/libleat.so", 500),
        "torchvision v2": lambda: augment_torch(100),
    }
    if keras:
        runs["Keras 2.3.1"] = lambda: run_keras(keras, folder, 4 * BATCH, workers)
        alone["Keras 2.3.1"] = lambda: run_keras(keras, folder, 0, 1, "alone")[0]
    results, times = ({name: [] for name in table} for table in (runs, alone))
    for _ in range(arguments.rounds):
        for name, run in alone.items():
            times[name].append(1e6 * run())
        print("augmenting alone: " + ", ".join(f"{name} {taken[-1]:.0f} us" for name, taken in times.items()), flush=True)
        for name, run in runs.items():
            try:
                results[name].append(run())
                print(f"  {name}: %.0f pictures/s, %.0f us CPU each" % results[name][-1], flush=True)
            except subprocess.SubprocessError as error:
                print(f"  {name}: left out: {error}"[-200:], file=sys.stderr)
    cpu_time.print_table({name: pairs for name, pairs in results.items() if pairs}, "leat")
    least = {name: min(taken) for name, taken in times.items()}
    print("augmenting alone: " + ", ".join(
        f"{name} {taken:.0f} us ({taken / least['leat']:.1f} x leat)" for name, taken in least.items()))


if __name__ == "__main__":
    main()
