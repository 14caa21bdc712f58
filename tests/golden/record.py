# SPDX-License-Identifier: Apache-2.0
"""Records golden vectors from Keras 2.3.1: record.py [--out DIR] [GROUP...].  See README.md."""
import argparse
import os

HERE = os.path.dirname(os.path.abspath(__file__))


def groups():
    """Returns the function of each group.  It imports late, because TensorFlow takes seconds to load."""
    import recorder.ordered  # noqa: F401
    from recorder import layers_conv, layers_convolutions, layers_core, layers_elements
    from recorder import layers_graph, layers_local, layers_masks, layers_options, layers_recurrent, layers_spatial
    from recorder import files, initializers, loops, losses, losses_model, metrics, metrics_classes, optimizers
    from recorder import applications, on_batch, summaries
    return {
        "layers": [layers_core.run, layers_elements.run, layers_conv.run, layers_recurrent.run, layers_graph.run,
                   layers_masks.run, layers_convolutions.run, layers_local.run, layers_spatial.run, layers_options.run],
        "losses": [losses.run, losses_model.run],
        "optimizers": [optimizers.run],
        "loops": [loops.run],
        "metrics": [metrics.run, metrics_classes.run],
        "initializers": [initializers.run],
        "files": [files.run],
        "summaries": [summaries.run],
        "applications": [applications.run],
        "on_batch": [on_batch.run],
    }


def main():
    """Parses the command line and records the groups."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default=os.path.join(HERE, "keras-2.3.1"))
    parser.add_argument("groups", nargs="*")
    arguments = parser.parse_args()
    known = groups()
    unknown = set(arguments.groups) - set(known)
    if unknown:
        parser.error("unknown groups: %s; known: %s" % (" ".join(sorted(unknown)), " ".join(known)))
    for group in arguments.groups or known:
        for run in known[group]:
            run(arguments.out)


if __name__ == "__main__":
    main()
