#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/fd.hpp"
#include "memory/registrar.hpp"
#include "memory/shared_memory.hpp"
#include "tests/support/thrown.hpp"

/// Helpers for tests of memory: pages, memfds, and a registrar that takes notes.
namespace offload::memory {

inline const std::size_t kPage = page_size();
inline constexpr auto kMost = std::numeric_limits<std::size_t>::max();

/// Returns the code of the Error that `action` throws.
template <class Action>
core::ErrorCode code_of(Action action) {
  return support::thrown_by(action).code();
}

inline core::Fd duplicate(int fd) {
  return core::Fd(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
}

/// Returns a memfd as a peer may send it.
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

/// A device that keeps a list of its calls.
class FakeRegistrar : public Registrar {
 public:
  explicit FakeRegistrar(std::string name, std::uint32_t first_key = 100)
      : name_(std::move(name)), next_key_(first_key) {}

  [[nodiscard]] std::string name() const override { return name_; }

  Key register_range(const Range& range, Access access) override {
    if (registered_.size() == capacity) {
      throw core::Error(core::ErrorCode::driver, "no room",
                        {core::Cause::Domain::work_completion, 5, 6});
    }
    registered_.push_back(range.address);
    last_access = access;
    const std::uint32_t key = next_key_++;
    return {key, key + 1000, this};
  }

  void deregister(const Range& range, const Key& key) noexcept override {
    order_is_reversed = order_is_reversed && !registered_.empty() &&
                        registered_.back() == range.address && key.handle == this;
    if (!registered_.empty()) registered_.pop_back();
  }

  [[nodiscard]] std::size_t count() const { return registered_.size(); }

  std::size_t capacity = 1000;
  Access last_access = Access::none;
  /// True so far, if also each key was of this registrar.
  bool order_is_reversed = true;

 private:
  std::string name_;
  std::uint32_t next_key_;
  std::vector<const std::byte*> registered_;
};

}  // namespace offload::memory
