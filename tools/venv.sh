#!/usr/bin/env bash
# Make the project's virtual environment: tools/venv.sh PYTHON DIRECTORY
# Debian splits the venv module from python3.11; install it when it is missing.
set -euo pipefail

python=$1
venv=$2

if ! command -v "$python" >/dev/null; then
    python=python3
fi
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    echo "Python 3.11 or newer is needed: apt-get install python3.11" >&2
    exit 1
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
    as_root=(sudo)
fi

if ! "$python" -c 'import ensurepip' 2>/dev/null; then
    echo "Installing Debian's python3-venv"
    "${as_root[@]}" apt-get update -qq
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-venv
fi

if [ ! -x "$venv/bin/python" ]; then
    echo "Making the virtual environment $venv"
    "$python" -m venv "$venv"
fi
echo "Installing trimaran, the clients and the tools (a minute or two the first time)"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --constraint constraints.txt \
    --editable . --group test --group lint tox
touch "$venv/.ready"
