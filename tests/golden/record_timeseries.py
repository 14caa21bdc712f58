#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records windows of time series and padded sequences from a real Keras, for tests/data/test_timeseries.c.

    python3 tests/golden/record_timeseries.py OUTPUT.json

with Keras 2.3.1 (TimeseriesGenerator, pad_sequences) writes tests/golden/timeseries/keras-2.3.1.json, and with Keras 3 on
TensorFlow (timeseries_dataset_from_array, pad_sequences) tests/golden/timeseries/keras-3.json.  The series is
0, 1, 2, ..., so that a window has the numbers of its rows; the target of row i is 1000 + i.
"""

import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras  # noqa: E402
import numpy as np  # noqa: E402

ROWS = 50
BATCH = 4

GENERATORS = [
    dict(length=10),
    dict(length=10, sampling_rate=2),
    dict(length=7, sampling_rate=3),
    dict(length=10, stride=3),
    dict(length=5, sampling_rate=2, stride=4, start_index=3, end_index=40),
    dict(length=6, reverse=True),
    dict(length=9, sampling_rate=2, stride=2, reverse=True, end_index=30),
    dict(length=49),
    dict(length=1),
]

DATASETS = [
    dict(sequence_length=10),
    dict(sequence_length=10, sampling_rate=2),
    dict(sequence_length=4, sequence_stride=3),
    dict(sequence_length=5, sequence_stride=2, sampling_rate=3),
    dict(sequence_length=5, sampling_rate=2, start_index=3, end_index=40),
    dict(sequence_length=3, sequence_stride=4, start_index=10, end_index=49),
    dict(sequence_length=1),
    dict(sequence_length=50),
]

SEQUENCES = [[1, 2, 3], [4], [5, 6, 7, 8, 9], [], [10, 11]]

PADDINGS = [
    dict(),
    dict(padding="post"),
    dict(maxlen=3),
    dict(maxlen=3, truncating="post"),
    dict(maxlen=3, padding="post", truncating="post"),
    dict(maxlen=8, value=7),
    dict(maxlen=2, padding="post", value=-1),
]


def record_generators():
    series, targets = np.arange(ROWS), 1000 + np.arange(ROWS)
    for arguments in GENERATORS:
        made = keras.preprocessing.sequence.TimeseriesGenerator(series, targets, batch_size=BATCH, **arguments)
        batches = [made[i] for i in range(len(made))]
        yield "timeseries_generator", arguments, batches


def record_datasets():
    series, targets = np.arange(ROWS), 1000 + np.arange(ROWS)
    for arguments in DATASETS:
        made = keras.utils.timeseries_dataset_from_array(series, targets, batch_size=BATCH, **arguments)
        yield "timeseries", arguments, [(x.numpy(), y.numpy()) for x, y in made]


def main():
    new = int(keras.__version__.split(".")[0]) >= 3
    cases = [
        dict(
            function=function,
            arguments=arguments,
            batches=[len(x) for x, _ in batches],
            windows=[row.tolist() for x, _ in batches for row in x],
            targets=[int(target) for _, y in batches for target in y],
        )
        for function, arguments, batches in (record_datasets() if new else record_generators())
    ]
    pad = keras.utils.pad_sequences if new else keras.preprocessing.sequence.pad_sequences
    paddings = [dict(arguments=arguments, padded=pad(SEQUENCES, **arguments).tolist()) for arguments in PADDINGS]
    record = dict(
        keras=keras.__version__, rows=ROWS, batch_size=BATCH, cases=cases, sequences=SEQUENCES, paddings=paddings
    )
    with open(sys.argv[1], "w") as file:
        json.dump(record, file, separators=(",", ":"))
        file.write("\n")


main()
