#!/usr/bin/env python3
"""Writes random weights for the service mlp, in the range in which PyTorch initialises them.

usage: make_weights.py FILE.npy
"""
import array
import math
import random
import sys

LAYERS = ((256, 512), (512, 512), (512, 10))  # inputs, outputs


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.split("\n\n")[1].strip())
    source = random.Random(1)
    weights = array.array("f")
    for inputs, outputs in LAYERS:
        bound = 1 / math.sqrt(inputs)
        weights.extend(source.uniform(-bound, bound) for _ in range((inputs + 1) * outputs))
    if sys.byteorder == "big":
        weights.byteswap()
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(weights)},), }}".ljust(117)
    with open(sys.argv[1], "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + (len(header) + 1).to_bytes(2, "little"))
        file.write(header.encode() + b"\n" + weights.tobytes())


if __name__ == "__main__":
    main()
