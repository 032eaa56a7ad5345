#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace offload::client {

/// The requests of the file of --requests: frames as on the wire, each a request (4) or, after its
/// request, the response that is expected (5).
struct Recording {
  struct Pair {
    std::span<const std::byte> request;   ///< payload, which refers to `content`
    std::span<const std::byte> response;  ///< the same, if has_responses
  };

  Recording(Recording&&) = default;
  Recording& operator=(Recording&&) = default;

  std::vector<std::byte> content;  ///< of the file
  std::vector<Pair> pairs;         ///< in the order of the file, at least one
  bool has_responses = false;      ///< each request has one, otherwise none has

  /// Reads a file. Throws InvalidInput, which names file, frame and offset.
  static Recording read(const std::string& path);
  /// Does the same for a file's content; `name`: the file's.
  static Recording parse(std::vector<std::byte> content, const std::string& name);

 private:
  Recording() = default;
};

}  // namespace offload::client
