"""In a Python that Spark's driver starts for a stateful stage: let ``fork_server`` do its work, in a fork that has the imports."""

import os
import sys


def hand_over(address):
    """Give the server this process's environment and streams, and end when its fork has."""
    import json
    import socket

    with socket.socket(socket.AF_UNIX) as server:
        server.connect(address)
        socket.send_fds(server, [b"\0"], [0, 1, 2])
        server.sendall(json.dumps(dict(os.environ)).encode())
        server.shutdown(socket.SHUT_WR)
        server.recv(1)  # nothing comes; the fork holds the other end until it ends
    os._exit(0)


if "FORK_SERVER" in os.environ and sys.orig_argv[1:] == ["-m", os.environ["FORKED_MODULE"]]:
    hand_over(os.environ["FORK_SERVER"])
