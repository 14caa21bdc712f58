# SPDX-License-Identifier: Apache-2.0
"""python -m leat is the command."""

import os
import subprocess
import sys
import unittest

import leat
import leat.__main__


@unittest.skipUnless(os.path.exists(leat.__main__.COMMAND), "this leat has the feed alone, not the command")
class Command(unittest.TestCase):
    def run_leat(self, *arguments):
        places = os.pathsep.join([os.path.dirname(os.path.dirname(leat.__file__)), os.environ.get("PYTHONPATH", "")])
        environment = dict(os.environ, PYTHONPATH=places)
        command = [sys.executable, "-m", "leat", *arguments]
        return subprocess.run(command, capture_output=True, text=True, env=environment)

    def test_version(self):
        self.assertEqual(self.run_leat("version").stdout.split()[:2], ["leat", leat.__version__])

    def test_wrong_words(self):
        done = self.run_leat("fitt")
        self.assertEqual(done.returncode, 2)
        self.assertIn("did you mean 'fit'?", done.stderr)


if __name__ == "__main__":
    unittest.main()
