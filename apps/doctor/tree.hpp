#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "core/units.hpp"

namespace offload::doctor {

inline constexpr std::streamsize kMostBytes = 64 << 10;

/// The files in which a kernel tells of its machine: /proc, /sys and /dev below a root, which a
/// test makes up. Reads only, and throws nothing: what cannot be read is not there.
class Tree {
 public:
  /// `root`: "" for this machine.
  explicit Tree(std::string root) : root_(std::move(root)) {}

  [[nodiscard]] const std::string& root() const noexcept { return root_; }

  /// The first 64 KiB of a file, without blanks at its end.
  [[nodiscard]] std::optional<std::string> read(const std::string& path) const {
    std::error_code error;
    if (!std::filesystem::is_regular_file(root_ + path, error)) return std::nullopt;
    std::string text = read_bytes(path);
    text.erase(text.find_last_not_of(" \t\r\n") + 1);
    return text;
  }
  /// The same of a file that is no text: as it is, empty if it cannot be read.
  [[nodiscard]] std::string read_bytes(const std::string& path) const {
    std::error_code error;
    if (!std::filesystem::is_regular_file(root_ + path, error)) return {};
    std::ifstream file(root_ + path, std::ios::binary);
    std::string bytes(static_cast<std::size_t>(kMostBytes), '\0');
    file.read(bytes.data(), kMostBytes);
    bytes.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
    return bytes;
  }
  /// A whole number in a file, decimal.
  [[nodiscard]] std::optional<std::int64_t> number(const std::string& path) const {
    const auto text = read(path);
    return text ? core::parse_number<std::int64_t>(*text) : std::nullopt;
  }
  [[nodiscard]] bool has(const std::string& path) const {
    std::error_code error;
    return std::filesystem::exists(root_ + path, error);
  }
  /// The path without links, "/sys/devices/..."; empty if there is none, or one that leads out of
  /// the root.
  [[nodiscard]] std::string resolved(const std::string& path) const {
    std::error_code error;
    std::string whole = std::filesystem::canonical(root_ + path, error);
    if (error || root_.empty()) return whole;
    const std::string root = std::filesystem::canonical(root_, error);
    if (root == "/") return whole;
    return whole.starts_with(root + '/') ? whole.substr(root.size()) : std::string();
  }
  /// The names in a directory, sorted; none if there is no such directory.
  [[nodiscard]] std::vector<std::string> names(const std::string& path) const {
    std::vector<std::string> names;
    std::error_code error;
    std::filesystem::directory_iterator entry(root_ + path, error);
    for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
      names.push_back(entry->path().filename().string());
    }
    std::ranges::sort(names);
    return names;
  }

 private:
  std::string root_;
};

}  // namespace offload::doctor
