#include "apps/doctor/tree.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "core/units.hpp"

namespace offload::doctor {

constexpr std::streamsize kMostBytes = 64 << 10;

std::string Tree::read_bytes(const std::string& path) const {
  std::error_code error;
  if (!std::filesystem::is_regular_file(root_ + path, error)) return {};
  std::ifstream file(root_ + path, std::ios::binary);
  std::string bytes(static_cast<std::size_t>(kMostBytes), '\0');
  file.read(bytes.data(), kMostBytes);
  bytes.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return bytes;
}

std::optional<std::string> Tree::read(const std::string& path) const {
  std::error_code error;
  if (!std::filesystem::is_regular_file(root_ + path, error)) return std::nullopt;
  std::string text = read_bytes(path);
  text.erase(text.find_last_not_of(" \t\r\n") + 1);
  return text;
}

std::optional<std::int64_t> Tree::number(const std::string& path) const {
  const auto text = read(path);
  return text ? core::parse_number<std::int64_t>(*text) : std::nullopt;
}

bool Tree::has(const std::string& path) const {
  std::error_code error;
  return std::filesystem::exists(root_ + path, error);
}

std::string Tree::resolved(const std::string& path) const {
  std::error_code error;
  std::string whole = std::filesystem::canonical(root_ + path, error);
  if (error || root_.empty()) return whole;
  const std::string root = std::filesystem::canonical(root_, error);
  if (root == "/") return whole;
  return whole.starts_with(root + '/') ? whole.substr(root.size()) : std::string();
}

std::vector<std::string> Tree::names(const std::string& path) const {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entry(root_ + path, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace offload::doctor
