#!/usr/bin/env bash
# Has spin go through every run of a model, and of the same model with each fault planted in turn: the first
# must be right, and each of the others be found wrong.
# usage: check.sh MODEL FAULT...
set -euo pipefail
model=$(realpath "$1")
shift
command -v spin >/dev/null || { echo "skipped: there is no spin (Debian: spin)"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

# Whether all runs are right: no assertion fails, and nothing waits for ever.
is_right() {
  spin "$@" -a "$model" >spin.log || { cat spin.log; exit 1; }
  cc "$optimised" -w -DSAFETY -DCOLLAPSE -o pan pan.c
  timeout 60 ./pan -m1000000 >pan.log || { cat pan.log; exit 1; }
  grep -q 'errors: 0$' pan.log
}

optimised=-O2
is_right || { echo "the model has an error:"; cat pan.log; exit 1; }
grep -q 'max search depth too small' pan.log && { echo "not all was searched"; exit 1; }
echo "right: $(sed -n 's/ *\([0-9.e+]*\) states, stored.*/\1/p' pan.log) states"
optimised=-O0  # a fault is found sooner than this compiles
for fault in "$@"; do
  if is_right "-D$fault"; then
    echo "$fault: not found"
    exit 1
  fi
  echo "$fault: found, $(sed -n 's/^pan:1: \(.*\) (at depth.*/\1/p' pan.log)"
done
