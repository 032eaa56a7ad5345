#pragma once

#include <cstdint>
#include <istream>
#include <optional>
#include <string>
#include <vector>

namespace offload::client {

/// The longest message of the protocol, bytes.
inline constexpr std::uint32_t kLongestMessage = std::uint32_t{16} << 20;

/// A size of requests, and its share among them relative to the others'.
struct SizeShare {
  std::uint32_t bytes = 0;
  double weight = 1;
};

/// The sizes of a run's requests, each once, at least one and at most kMostSizes.
using SizeMix = std::vector<SizeShare>;
inline constexpr std::size_t kMostSizes = 1024;

/// Parses a text such as "64:90,64k:10": 90 of 100 requests have 64 bytes. Nothing if malformed.
std::optional<SizeMix> parse_mix(const std::string& text);
/// Parses a text such as "64-4k": all sizes of the range equally, or 256 evenly spread over it if
/// it has more. Nothing if it is malformed.
std::optional<SizeMix> parse_uniform_sizes(const std::string& text);
/// Reads a file with one size in each line: all lines are equally likely. Empty lines and text
/// after '#' are skipped. Throws Error, which names file and line.
SizeMix read_sizes_file(const std::string& path);
/// The same of a file's text; `name`: the file's.
SizeMix parse_sizes(std::istream& text, const std::string& name);

}  // namespace offload::client
