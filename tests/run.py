"""Runs all tests on two cores, or all generated ones for a time, and ends with how many passed and failed.

    python tests/run.py               Rust tests and then the Python ones, beside them those on Spark, which mostly wait
    python tests/run.py fuzz MINUTES  generated tests with fresh seeds, in two processes

The output of a command is shown whole when it ends.
"""

import re
import subprocess
import sys
import threading
import time

PYTEST = [sys.executable, "-m", "pytest"]
# Of the release build, which `make build` makes: dependencies are compiled once. Our own crates check their assertions.
CARGO = ["cargo", "test", "--release", "--workspace", "--exclude", "everview-python", "--quiet"]
for crate in ("everview-expr", "everview-kernel"):
    for check in ("debug-assertions", "overflow-checks"):
        CARGO += ["--config", f"profile.release.package.{crate}.{check}=true"]

COUNTS = re.compile(r"(\d+) (passed|failed|errors?)\b")


def counted(output, code):
    """How many tests passed and failed, by the summaries of cargo and pytest."""
    summaries = [line for line in output.splitlines() if line.startswith("test result:")]
    summaries = summaries or output.strip().splitlines()[-1:]
    passed = failed = 0
    for summary in summaries:
        for number, what in COUNTS.findall(summary):
            if what == "passed":
                passed += int(number)
            else:
                failed += int(number)
    return passed, failed or int(code != 0)  # a command that ends without saying why is a failure too


class Lane(threading.Thread):
    """Commands one after another."""

    printing = threading.Lock()

    def __init__(self, commands):
        super().__init__()
        self.commands = commands
        self.passed = self.failed = 0

    def run(self):
        for command in self.commands:
            start = time.monotonic()
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            passed, failed = counted(done.stdout, done.returncode)
            self.passed += passed
            self.failed += failed
            with Lane.printing:
                shown = " ".join(command[:6])
                print(
                    f"$ {shown}\n{done.stdout}({passed} passed, {failed} failed, {time.monotonic() - start:.0f} s)\n",
                    flush=True,
                )


def main(arguments):
    if arguments[:1] == ["fuzz"]:
        options = ["--fuzz", *arguments[1:]]
        lanes = [Lane([[*PYTEST, *options, "--part", f"{part}/2"]]) for part in (1, 2)]
    else:
        lanes = [Lane([CARGO, [*PYTEST, "--ignore=tests/spark"]]), Lane([[*PYTEST, "tests/spark"]])]
    for lane in lanes:
        lane.start()
    for lane in lanes:
        lane.join()
    passed, failed = sum(lane.passed for lane in lanes), sum(lane.failed for lane in lanes)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
