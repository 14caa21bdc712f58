# SPDX-License-Identifier: Apache-2.0
"""python -m leat: the leat command, which trains, evaluates, converts and shows models."""

import os
import sys

COMMAND = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "leat")


def main() -> None:
    """Replaces this process by the command, which receives the arguments of this process."""
    try:
        os.execv(COMMAND, ["leat", *sys.argv[1:]])
    except OSError as error:
        sys.exit(
            f"leat: cannot run {COMMAND}: {error.strerror}: this installation has leat.Feed alone; install a wheel of"
            " leat, or build leat where the libraries are installed that docs/python/install.md names"
        )


if __name__ == "__main__":
    main()
