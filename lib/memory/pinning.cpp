#include "memory/pinning.hpp"

#include <sys/mman.h>
#include <sys/resource.h>

#include <atomic>
#include <cerrno>
#include <string>

#include "core/error.hpp"
#include "core/log.hpp"
#include "memory/shared_memory.hpp"

namespace offload::memory {
namespace {

/// Brings the page of `byte` into memory. A writable page must be written, as a read alone would
/// map the kernel's shared page of zeroes; exchanging a byte for itself is a write that changes
/// nothing.
void touch(std::byte& byte, bool writable) noexcept {
  // volatile: the compiler must not drop the access.
  std::byte value = *const_cast<const volatile std::byte*>(&byte);
  if (!writable) return;
  // Relaxed: no other thread reads a result of it; it has no pair.
  std::atomic_ref<std::byte>(byte).compare_exchange_strong(value, value, std::memory_order_relaxed);
}

void touch_pages(const Range& range) noexcept {
  const std::size_t page = page_size();
  const auto begin = reinterpret_cast<std::uintptr_t>(range.address);
  std::size_t at = 0;
  while (at < range.length) {
    touch(range.address[at], range.writable);
    at += page - (begin + at) % page;
  }
}

std::string memlock_limit() {
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return "unknown";
  if (limit.rlim_cur == RLIM_INFINITY) return "unlimited";
  return std::to_string(limit.rlim_cur) + " bytes";
}

}  // namespace

Pinning::Pinning(const Range& range) noexcept {
  if (range.location == Location::device || is_elsewhere(range.location)) return;
  // The exporter manages the memory of a dma-buf, which may be device memory without atomic access.
  if (range.descriptor.kind == DescriptorKind::dma_buf) return;
  touch_pages(range);
  if (::mlock(range.address, range.length) != 0) {
    lock_error_ = errno;
    return;
  }
  locked_ = {range.address, Unlock{range.length}};
}

void Unlock::operator()(std::byte* address) const noexcept {
  if (::munlock(address, length) != 0) {
    core::log_warning("munlock of {} bytes: {}", length, core::describe_errno(errno));
  }
}

std::vector<Pinning> pin_all(std::span<const Range> ranges, std::string_view object) {
  std::vector<Pinning> pinnings;
  pinnings.reserve(ranges.size());
  std::size_t unlocked = 0;
  int why = 0;
  for (const Range& range : ranges) {
    const Pinning& pinning = pinnings.emplace_back(range);
    if (pinning.lock_error() == 0) continue;
    unlocked += range.length;
    why = pinning.lock_error();
  }
  if (why != 0) {
    core::log_warning(
        "{}: {} bytes are present but not locked in memory ({}); RLIMIT_MEMLOCK is {}", object,
        unlocked, core::describe_errno(why), memlock_limit());
  }
  return pinnings;
}

}  // namespace offload::memory
