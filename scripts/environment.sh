#!/bin/sh
# Makes .venv fit pyproject.toml and the lock:  sh scripts/environment.sh run|dev
#
# `run` installs what the server needs and removes nothing, so that `make serve` never takes the tests' packages away;
# `dev` installs all of it. uv does the work where it is on the PATH, otherwise Python's own venv and pip.
set -eu

what=$1
wanted=${PYTHON:-python3}
cd "$(dirname "$0")/.."

say() { printf '%s\n' "$*" >&2; }
die() {
    say "$*"
    exit 1
}

find_python() {
    for candidate in "$wanted" python3 python3.14 python3.13 python3.12 python3.11; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            printf '%s\n' "$candidate"
            return
        fi
    done
    found=$("$wanted" --version 2>&1) || found="no Python"
    die "Threadmark needs Python 3.11 or newer and found $found as '$wanted':" \
        "install it (Debian, Ubuntu: apt-get install python3 python3-venv) or name one: make PYTHON=/path/to/python3"
}

with_uv() {
    unset VIRTUAL_ENV
    export UV_PROJECT_ENVIRONMENT=.venv
    case $what in
    run) set -- --no-dev --inexact ;;
    dev) set -- --all-groups ;;
    esac
    [ -e .venv ] || set -- "$@" --python "$python"
    # uv leaves packages uncompiled: where bytecode may not be written, every start would compile them all again.
    uv sync --frozen --compile-bytecode "$@" || die "uv could not set up .venv (its reason is above); 'make UV=no' sets it up with pip."
}

with_pip() {
    "$python" -c 'import ensurepip, venv' 2>/dev/null ||
        die "Python's venv module is missing: install it (Debian, Ubuntu: apt-get install python3-venv) and try again."
    # An environment that uv made has no pip, one that was interrupted may lack anything: begin it again.
    .venv/bin/python -c 'import pip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
        "$python" -m venv --clear .venv
    set -- -e .
    if [ "$what" = dev ]; then
        # Older pips cannot read dependency groups.
        .venv/bin/python -c 'import pathlib, tomllib
groups = tomllib.loads(pathlib.Path("pyproject.toml").read_text())["dependency-groups"]
print(*(line for group in groups.values() for line in group), sep="\n")' >.venv/dev-requirements.txt
        set -- "$@" -r .venv/dev-requirements.txt
    fi
    .venv/bin/python -m pip install --disable-pip-version-check --constraint constraints.txt "$@" ||
        die "pip could not set up .venv; its reason is above."
}

unset PYTHONDONTWRITEBYTECODE
python=$(find_python)
say "Setting up .venv ($what); the first time takes up to two minutes."
if [ "${UV:-}" != no ] && uv --version >/dev/null 2>&1; then with_uv; else with_pip; fi

touch .venv/.ready-run
[ "$what" = run ] || touch .venv/.ready-dev
