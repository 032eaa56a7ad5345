#pragma once

#include <fcntl.h>
#include <sys/mman.h>

#include <cstddef>
#include <limits>

#include "core/error.hpp"
#include "core/fd.hpp"
#include "memory/page.hpp"
#include "tests/support/thrown.hpp"

/// What the tests of this folder have in common.
namespace offload::memory {

inline const std::size_t kPage = page_size();
inline constexpr auto kMost = std::numeric_limits<std::size_t>::max();

/// The kind of Error that `action` throws.
template <class Action>
core::ErrorCode code_of(Action action) {
  return support::thrown_by(action).code();
}

inline core::Fd duplicate(int fd) {
  return core::Fd(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
}

/// A memfd as a peer may send it.
inline core::Fd memfd(std::size_t bytes, int seals) {
  core::Fd fd(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(bytes)), 0);
  EXPECT_EQ(::fcntl(fd.get(), F_ADD_SEALS, seals), 0);
  return fd;
}

inline bool is_mapped(const std::byte* address) {
  unsigned char resident = 0;
  return ::mincore(const_cast<std::byte*>(address), kPage, &resident) == 0;
}

}  // namespace offload::memory
