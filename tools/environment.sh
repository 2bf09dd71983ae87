#!/bin/sh
# Create the virtual environment in $1: locked dependencies, then this package in editable form.
# Uses uv when it is on the path, venv and pip otherwise; safe to run again after an interrupted run.
set -eu
venv=${1:?usage: environment.sh VENV}

say() { printf '%s\n' "$*"; }
fail() { printf 'error: %s\n' "$*" >&2; exit 1; }

find_python() {
    for candidate in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11 python; do
        if command -v "$candidate" >/dev/null 2>&1 &&
            "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    return 1
}

# Registries time out now and then; a second try nearly always works.
retry() {
    for pause in 2 10 0; do
        "$@" && return 0
        [ "$pause" = 0 ] || { say "  that failed; trying again in ${pause} s"; sleep "$pause"; }
    done
    return 1
}

python=$(find_python) || fail "Python 3.11 or newer is needed; install it, or set PYTHON to its path"
if ! "$venv/bin/python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    rm -rf "$venv"
    say "Creating $venv with $("$python" --version)"
    if command -v uv >/dev/null 2>&1; then
        uv venv --quiet --python "$python" "$venv"
    else
        "$python" -m venv "$venv" ||
            fail "python -m venv failed; on Debian and Ubuntu: apt-get install python3-venv"
    fi
fi

say "Installing dependencies (Spark and its Java are 600 MB: some minutes the first time)"
if command -v uv >/dev/null 2>&1; then
    export VIRTUAL_ENV="$PWD/$venv"
    retry uv pip install --require-hashes -r requirements.lock
    retry uv pip install --no-deps --no-build-isolation -e .
else
    "$venv/bin/python" -m pip --version >/dev/null 2>&1 || "$venv/bin/python" -m ensurepip >/dev/null
    export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
    retry "$venv/bin/python" -m pip install --progress-bar on --require-hashes -r requirements.lock
    retry "$venv/bin/python" -m pip install -q --no-deps --no-build-isolation -e .
fi
touch "$venv/.ready"
say "Environment ready in $venv"
