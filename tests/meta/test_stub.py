"""The stub of the kernel tells the truth about the binary."""

import os
import subprocess
import sys


def test_stub_matches_the_binary(root):
    command = [
        sys.executable,
        "-m",
        "mypy.stubtest",
        "everview._kernel",
        "--mypy-config-file",
        "pyproject.toml",
        "--concise",
    ]
    environment = os.environ | {"MYPYPATH": "python"}
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
