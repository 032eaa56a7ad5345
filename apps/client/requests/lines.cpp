#include "apps/client/requests/lines.hpp"

#include <fmt/core.h>

#include "core/error.hpp"

namespace offload::client {
namespace {

constexpr std::string_view kBlanks = " \t\r";

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

}  // namespace

bool Lines::next(std::string_view& line) {
  while (std::getline(text_, line_)) {
    ++number_;
    line = trimmed(std::string_view(line_).substr(0, line_.find('#')));
    if (!line.empty()) return true;
  }
  if (text_.bad()) core::throw_errno("cannot read '" + name_ + "'");
  return false;
}

void Lines::fail(const std::string& what) const {
  throw core::Error(core::ErrorCode::bad_message,
                    fmt::format("'{}', line {}: {}", name_, number_, what));
}

}  // namespace offload::client
