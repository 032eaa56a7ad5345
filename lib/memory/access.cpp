#include "memory/access.hpp"

#include <array>
#include <string_view>
#include <utility>

#include "core/error.hpp"

namespace offload::memory {
namespace {

constexpr std::array<std::pair<Access, std::string_view>, 6> kNames = {{
    {Access::local_read, "local_read"},
    {Access::local_write, "local_write"},
    {Access::remote_read, "remote_read"},
    {Access::remote_write, "remote_write"},
    {Access::remote_atomic, "remote_atomic"},
    {Access::peer_pcie, "peer_pcie"},
}};

[[noreturn]] void refuse(Access access, std::string_view why) {
  throw core::Error(core::ErrorCode::invalid_value,
                    "access " + to_string(access) + ": " + std::string(why));
}

}  // namespace

void check_access(Access access) {
  constexpr Access kWritesFromOutside = Access::remote_write | Access::remote_atomic;
  if ((static_cast<std::uint32_t>(access) & ~kAccessFlags) != 0) refuse(access, "unknown flag");
  if (!includes(access, Access::local_read)) refuse(access, "local_read is required");
  if ((access & kWritesFromOutside) != Access::none && !includes(access, Access::local_write)) {
    refuse(access, "remote_write and remote_atomic require local_write");
  }
}

std::string to_string(Access access) {
  std::string text;
  for (const auto& [flag, name] : kNames) {
    if (!includes(access, flag)) continue;
    if (!text.empty()) text += '|';
    text += name;
  }
  return text.empty() ? "none" : text;
}

}  // namespace offload::memory
