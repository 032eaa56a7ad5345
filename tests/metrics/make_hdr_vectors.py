#!/usr/bin/env python3
"""Prints hdr_vectors.hpp: histograms as PyPI's hdrhistogram (version 0.10.8) encodes them.

usage: make_hdr_vectors.py SIGNIFICANT-DIGITS | clang-format >hdr_vectors.hpp
"""
import sys

from hdrh.histogram import HdrHistogram

HOUR = 3_600_000_000_000
LARGEST = 2**63 - 1
EDGES = sorted({(1 << bit) + step for bit in (0, 7, 8, 9, 11, 12, 20, 31, 32, 40) for step in (-1, 0, 1)})
VECTORS = {
    "empty": (HOUR, []),
    "zero": (HOUR, [(0, 1)]),
    "one": (HOUR, [(1, 1)]),
    "edges": (HOUR, [(value, index + 1) for index, value in enumerate(EDGES)]),
    "dense": (HOUR, [(value, 1) for value in range(300)]),
    "latencies": (HOUR, [(30_000 + 137 * step * step, 1000 // (step + 1)) for step in range(40)]),
    "large counts": (HOUR, [(40_000, 2**40), (50_000, 2**52), (60_000, 127), (70_000, 128)]),
    "an hour": (HOUR, [(HOUR, 2)]),
    "small range": (1_000_000, [(7, 3), (1_000_000, 5)]),
    "whole range": (LARGEST, [(1, 1), (2 * HOUR, 1), (2**62 + 12345, 7)]),
}


def main():
    digits = int(sys.argv[1])
    print("#pragma once\n\n#include <cstdint>\n#include <vector>\n")
    print("namespace offload::metrics {\n")
    print("/// Made by make_hdr_vectors.py.")
    print("struct HdrVector {\nstruct Count { std::uint64_t value; std::uint64_t count; };")
    print("const char* name;\nstd::uint64_t highest;\nconst char* text;\nstd::vector<Count> counts;\n};\n")
    print(f"inline constexpr unsigned kHdrVectorDigits = {digits};\n")
    print("inline const std::vector<HdrVector>& hdr_vectors() {")
    print("static const std::vector<HdrVector> vectors = {")
    for name, (highest, counts) in VECTORS.items():
        histogram = HdrHistogram(1, highest, digits)
        for value, count in counts:
            assert histogram.record_value(value, count)
        pairs = ", ".join(f"{{{value}U, {count}U}}" for value, count in counts)
        print(f'{{"{name}", {highest}U, "{histogram.encode().decode()}", {{{pairs}}}}},')
    print("};\nreturn vectors;\n}\n\n}  // namespace offload::metrics")


if __name__ == "__main__":
    main()
