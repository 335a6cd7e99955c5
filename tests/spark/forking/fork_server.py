"""Runs the Python processes that Spark's driver starts as forks of one process, which has imported what they need.

Spark starts ``python -m <MODULE>`` for every stateful stage of every query, and importing is nearly all that such a process does. With the
variables that ``serving`` gives in the environment of Spark, ``sitecustomize`` of this directory hands it over to a fork of this server.

    python fork_server.py ADDRESS
"""

import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from contextlib import contextmanager
from pathlib import Path

MODULE = "pyspark.sql.streaming.transform_with_state_driver_worker"
IMPORTED = (MODULE, "everview.spark", "everview.spark.processor")


@contextmanager
def serving():
    """A server for as long as this lasts, and the variables by which processes find it; where forks are safe only, and else nothing."""
    if sys.platform != "linux":
        yield {}
        return
    with tempfile.TemporaryDirectory(prefix="forks-") as directory:  # short: the path of a socket has at most 107 bytes
        address = f"{directory}/server"
        command = [sys.executable, __file__, address]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout.readline() == "ready\n"
            paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH")]
            yield {
                "FORK_SERVER": address,
                "FORKED_MODULE": MODULE,
                "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            }


def main(address):
    """Serve until the input ends, as it does when the tests end in any way."""
    for name in IMPORTED:
        importlib.import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the forks
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen(64)
        print("ready", flush=True)
        while sys.stdin not in select.select([sys.stdin, server], [], [])[0]:
            asking, _ = server.accept()
            if os.fork() == 0:
                server.close()
                work(asking)
            asking.close()


def work(asking):
    """What the process that asks would do, with its environment and streams."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _, streams, _, _ = socket.recv_fds(asking, 1, 3)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    with asking.makefile("rb") as given:
        environment = json.load(given)
    os.environ.clear()
    os.environ.update(environment)
    status = 1
    try:
        sys.modules.pop(MODULE)
        runpy.run_module(MODULE, run_name="__main__")
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(status)


if __name__ == "__main__":
    main(sys.argv[1])
