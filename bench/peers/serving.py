# SPDX-License-Identifier: Apache-2.0
"""The requests to a peer: each is one line of JSON on standard input, each answer one line of JSON."""
import json
import os
import sys
import time


def serve(answer):
    """Answers the requests on standard input or, without --serve, that of the command line."""
    questions = sys.stdin if "--serve" in sys.argv[1:] else sys.argv[1:]
    for line in questions:
        print(json.dumps(answer(json.loads(line))), flush=True)
    os._exit(0)  # do not wait for processes that are still working


def median_us(once, seconds, least=3, cpu=False):
    """Returns the median time of a call; with `cpu` the least CPU time of all threads, which a busy machine changes little."""
    for _ in range(least):
        once()
    clock = time.process_time if cpu else time.perf_counter
    samples, end = [], time.perf_counter() + seconds
    while len(samples) < least or time.perf_counter() < end:
        start = clock()
        once()
        samples.append(clock() - start)
    return (min(samples) if cpu else sorted(samples)[len(samples) // 2]) * 1e6


def fashion(folder):
    """Returns the images (n, 28, 28) and labels of Fashion-MNIST's training set as uint8 and int64."""
    import gzip

    import numpy
    with gzip.open(os.path.join(folder, "train-images-idx3-ubyte.gz")) as file:
        images = numpy.frombuffer(file.read(), numpy.uint8, offset=16).reshape(-1, 28, 28)
    with gzip.open(os.path.join(folder, "train-labels-idx1-ubyte.gz")) as file:
        return images, numpy.frombuffer(file.read(), numpy.uint8, offset=8).astype(numpy.int64)
