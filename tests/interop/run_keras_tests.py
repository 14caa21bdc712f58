# SPDX-License-Identifier: Apache-2.0
"""Runs Keras's own tests of its loaders with leat's enqueuers in their place.

run_keras_tests.py FILE... [-- arguments of pytest]; needs leat, pytest, and the Keras that the files belong to:
    Keras 2.3.1 (and `flaky`): tests/keras/utils/data_utils_test.py, tests/test_multiprocessing.py
    Keras 3 (with TensorFlow, JAX and torch): keras/src/trainers/data_adapters/py_dataset_adapter_test.py
The files are not part of leat: they come from Keras's repository.  A copy of each is run in which its disabled and
skipped tests are enabled.  Succeeds if all tests pass but those of KNOWN, which are printed with the reason."""
import os
import re
import sys
import tempfile

import keras
import pytest

import leat.keras

KNOWN = {
    "test_generator_enqueuer_threadsafe": "expects an error for a generator that is not thread-safe; leat calls it by"
    " one thread, and it works",
}


def enable(text):
    """Returns the text of a test file in which no test is disabled."""
    text = text.replace("def DISABLED_test_", "def test_")
    text = re.sub(r"^( +)(pytest\.skip|self\.skipTest)\(", r"\1print(", text, flags=re.M)
    return re.sub(r"^pytestmark = pytest\.mark\.skipif\(\s*True,.*?\)\n", "", text, flags=re.S | re.M)


class Tally:
    """Counts the outcomes of the tests."""

    def __init__(self):
        self.outcomes = {}

    def pytest_runtest_logreport(self, report):
        if report.when == "call" or report.outcome != "passed":
            if self.outcomes.get(report.nodeid) != "failed":
                self.outcomes[report.nodeid] = report.outcome

    def print(self):
        """Returns 1 if a test failed that is not known to fail."""
        names = {"passed": [], "skipped": [], "failed": []}
        for name, outcome in self.outcomes.items():
            names[outcome].append(name)
        known = [n for n in names["failed"] if n.split("::")[-1].split("[")[0] in KNOWN]
        print(
            f"\nwith leat: {len(names['passed'])} passed, {len(names['failed'])} failed, of which {len(known)} are known,"
            f" {len(names['skipped'])} skipped by the file itself (Keras {keras.__version__})"
        )
        for name in known:
            print(f"known: {name.split('::')[-1]}: {KNOWN[name.split('::')[-1].split('[')[0]]}")
        return int(len(known) < len(names["failed"]) or not names["passed"])


def main(arguments):
    if "--" in arguments:
        at = arguments.index("--")
        files, options = arguments[:at], arguments[at + 1:]
    else:
        files, options = arguments, []
    if not files:
        sys.exit(__doc__)
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder:
        copies = []
        for file in files:
            with open(file, encoding="utf-8") as source:
                text = enable(source.read())
            copies.append(os.path.join(folder, os.path.basename(file)))
            with open(copies[-1], "w", encoding="utf-8") as copy:
                copy.write(text)
        undo = leat.keras.use_enqueuers()
        pytest.main(["-v", "-p", "no:cacheprovider", "--rootdir", folder, *options, *copies], plugins=[tally])
        undo()
    return tally.print()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
