#include "cli/nearest.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace offload::cli {
namespace {

constexpr std::size_t kMostNames = 3;
constexpr std::size_t kShortestPart = 3;
constexpr std::size_t kLongestWord = 64;  // a longer one is no misspelt option

/// The number of letters to insert, remove, replace, or swap with the next one.
std::size_t distance_of(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> rows(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        rows[i][j] = i + j;
        continue;
      }
      const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      rows[i][j] = std::min({rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        rows[i][j] = std::min(rows[i][j], rows[i - 2][j - 2] + 1);
    }
  }
  return rows[a.size()][b.size()];
}

std::string_view without_dashes(std::string_view name) {
  return name.substr(std::min(name.find_first_not_of('-'), name.size()));
}

/// Returns whether `part` is one or several whole parts of `name`, as "listen-port" is of
/// "server-listen-port", or its beginning, as "tls-cert" is of "tls-certificate".
bool is_part(std::string_view part, std::string_view name) {
  if (part.size() < kShortestPart) return false;
  if (name.starts_with(part)) return true;
  const std::string inside = fmt::format("-{}-", name);
  return inside.find(fmt::format("-{}-", part)) != std::string::npos;
}

}  // namespace

std::vector<std::string> nearest(std::string_view word, const std::vector<std::string>& names) {
  word = without_dashes(word);
  if (word.empty() || word.size() > kLongestWord) return {};
  std::vector<std::pair<std::size_t, std::string>> found;
  for (const std::string& name : names) {
    const std::string_view bare = without_dashes(name);
    const std::size_t distance = distance_of(word, bare);
    const std::size_t most = std::max<std::size_t>(1, std::min(word.size(), bare.size()) / 3);
    if (bare.size() > 1 && distance <= most) {
      found.emplace_back(distance, name);
    } else if (is_part(word, bare) || is_part(bare, word)) {
      found.emplace_back(most + distance, name);
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> result;
  for (const auto& [distance, name] : found) {
    // Much farther ones than the nearest are others.
    if (result.size() == kMostNames || distance > found.front().first + 2) break;
    result.push_back(name);
  }
  return result;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& names) {
  const std::vector<std::string> meant = nearest(word, names);
  return meant.empty() ? std::string()
                       : fmt::format("; did you mean {}?", fmt::join(meant, " or "));
}

}  // namespace offload::cli
