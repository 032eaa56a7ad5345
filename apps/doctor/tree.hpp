#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace offload::doctor {

/// The files in which a kernel tells of its machine: /proc, /sys and /dev below a root, which a
/// test makes up. Reads only, and throws nothing: what cannot be read is not there.
class Tree {
 public:
  /// `root`: "" for this machine.
  explicit Tree(std::string root) : root_(std::move(root)) {}

  [[nodiscard]] const std::string& root() const noexcept { return root_; }

  /// The first 64 KiB of a file, without blanks at its end.
  [[nodiscard]] std::optional<std::string> read(const std::string& path) const;
  /// The same of a file that is no text: as it is, empty if it cannot be read.
  [[nodiscard]] std::string read_bytes(const std::string& path) const;
  /// A whole number in a file, decimal.
  [[nodiscard]] std::optional<std::int64_t> number(const std::string& path) const;
  [[nodiscard]] bool has(const std::string& path) const;
  /// The path without links, "/sys/devices/..."; empty if there is none, or one that leads out of
  /// the root.
  [[nodiscard]] std::string resolved(const std::string& path) const;
  /// The names in a directory, sorted; none if there is no such directory.
  [[nodiscard]] std::vector<std::string> names(const std::string& path) const;

 private:
  std::string root_;
};

}  // namespace offload::doctor
