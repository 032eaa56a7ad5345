#include "apps/client/load/errors.hpp"

#include <cerrno>
#include <numeric>

namespace offload::client {
namespace {

constexpr std::string_view kErrorNames[] = {
    "mismatch", "bad_frame", "late",           "time_out",        "closed",
    "reset",    "refused",   "connect_failed", "never_connected", "unanswered"};
constexpr auto kFirst = static_cast<std::size_t>(ErrorKind::first_refusal);
static_assert(std::size(kErrorNames) == kFirst);

}  // namespace

ErrorKind kind_of(protocol::Refusal reason) noexcept {
  const auto code = static_cast<std::size_t>(reason);
  const bool known = kFirst + code < ErrorCounts::kKinds && !protocol::name_of(reason).empty();
  return static_cast<ErrorKind>(kFirst + (known ? code : 0));  // no refusal has code 0
}

ErrorKind kind_of_errno(int errnum) noexcept {
  switch (errnum) {
    case ECONNREFUSED: return ErrorKind::refused;
    case ETIMEDOUT: return ErrorKind::time_out;
    case ECONNRESET:
    case EPIPE: return ErrorKind::reset;
    default: return ErrorKind::connect_failed;
  }
}

std::string_view name_of(ErrorKind kind) noexcept {
  const auto index = static_cast<std::size_t>(kind);
  if (index < kFirst) return kErrorNames[index];
  const auto name = protocol::name_of(static_cast<protocol::Refusal>(index - kFirst));
  return name.empty() ? "unknown_refusal" : name;
}

std::uint64_t ErrorCounts::total() const noexcept {
  return std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0});
}

}  // namespace offload::client
