# SPDX-License-Identifier: Apache-2.0
"""One of the processes of test_jax.py: jax_process.py PORT RANK."""

import sys

import numpy


def main(port, rank):
    import jax
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    import leat
    import leat.jax

    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"127.0.0.1:{port}", num_processes=2, process_id=rank)
    sharding = NamedSharding(Mesh(numpy.array(jax.devices()), ("data",)), PartitionSpec("data"))
    samples = numpy.arange(32, dtype="float32")
    sums = []
    with leat.Feed(samples, batch_size=4, workers=1, rank=rank, world=2, remainder="drop") as feed:
        for x in leat.jax.iterate(feed, sharding):
            assert x.shape == (8,) and len(x.addressable_shards) == 2, x
            sums.append(float(jax.jit(lambda value: value.sum())(x)))
    print("sums", sums)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
