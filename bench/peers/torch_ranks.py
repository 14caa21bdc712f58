# SPDX-License-Identifier: Apache-2.0
"""One rank of PyTorch for bench/ranks.py, started by torchrun:
    torch_ranks.py reduce MAX_BYTES          sums by Gloo
    torch_ranks.py step MODEL BATCH STEPS    DistributedDataParallel with Gloo; BATCH samples in all ranks together
The figures are those of bench_ranks, and rank 0 prints them as JSON."""
import json
import sys
import time

import torch
import torch.distributed as dist

import torch_step


def reduce(most):
    sizes = []
    for bytes_of in (10 ** i for i in range(3, 9)):
        if bytes_of > most:
            break
        values, us = torch.zeros(bytes_of // 4), []
        for i in range(-2, min(512, max(5, int(400e6 / bytes_of)))):
            start = time.perf_counter()
            dist.all_reduce(values)
            if i >= 0:
                us.append((time.perf_counter() - start) * 1e6)
        us.sort()
        sizes.append({"bytes": bytes_of, "median_us": us[len(us) // 2], "min_us": us[0]})
    return {"ranks": dist.get_world_size(), "by": "gloo", "sizes": sizes}


def step(name, batch, steps):
    ranks = dist.get_world_size()
    wishes = {"model": name, "batch": batch // ranks, "channels_last": name != "lstm"}
    model, x, y, loss = torch_step.make(wishes)
    train = torch_step.trainer(torch.nn.parallel.DistributedDataParallel(model), loss, wishes)
    ends, first_at = [], 0
    for _ in range(steps):
        train(x, y).item()
        first_at = first_at or time.time()
        ends.append(time.perf_counter() * 1e6)
    us = sorted(b - a for a, b in zip(ends[1:], ends[2:]))
    return {"model": name, "batch": batch, "ranks": ranks, "threads": torch.get_num_threads(), "first_at": first_at,
            "median_us": us[len(us) // 2] if us else 0, "min_us": us[0] if us else 0}


def main():
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group("gloo")
    words = sys.argv[2:]
    found = reduce(int(words[0])) if sys.argv[1] == "reduce" else step(words[0], int(words[1]), int(words[2]))
    if dist.get_rank() == 0:
        print(json.dumps(found), flush=True)
    dist.destroy_process_group()


main()
