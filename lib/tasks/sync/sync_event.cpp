#include "tasks/sync/sync_event.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <climits>
#include <ctime>
#include <limits>
#include <string>
#include <thread>
#include <utility>

#include "core/cpu.hpp"
#include "core/error.hpp"
#include "protocol/bytes.hpp"
#include "protocol/envelope.hpp"

namespace offload::sync {
namespace {

using core::Error;
using core::ErrorCode;
using kernels::SyncEventWords;

constexpr std::uint32_t kMagic = 0x53594e43;  // "SYNC"
constexpr std::uint16_t kVersion = 1;
/// The longest sleep without a poll: a publisher may be killed before it wakes the sleepers, and
/// futex(2) compares only the counter's low half.
constexpr core::Duration kLongestSleep = std::chrono::milliseconds(100);
constexpr core::Duration kSleepForGpu = std::chrono::microseconds(50);
/// Reading the clock costs as much as many polls of the counter.
constexpr std::uint32_t kSpinsPerClock = 64;

static_assert(std::endian::native == std::endian::little);

/// A description in place has: process id u32 | descriptor u32 | device u64 | inode u64 | publisher
/// u8. The file's device and inode say whether the descriptor is still that of the event.
constexpr protocol::Envelope kInPlace{
    "description of a sync event", 0x4f46'5345 /* "OFSE" */, 1,
    protocol::kEnvelopeHeader + (4 + 4 + 8 + 8 + 1) + protocol::kEnvelopeTrailer};

struct stat status_of(int fd) {
  struct stat status {};
  core::check_errno(::fstat(fd, &status), "fstat of a sync event");
  return status;
}

/// The low half of the counter, as a futex has 32 bits.
std::uint32_t* futex_word(SyncEventWords& words) noexcept {
  return reinterpret_cast<std::uint32_t*>(&words.value);
}

Publisher decode(std::span<const std::byte> blob) {
  protocol::Reader reader(blob);
  const auto magic = reader.integer<std::uint32_t>();
  const auto version = reader.integer<std::uint16_t>();
  if (!reader.ok() || magic != kMagic) {
    throw Error(ErrorCode::bad_message, "this is not an exported sync event");
  }
  if (version != kVersion) {
    throw Error(ErrorCode::unsupported_version, "the sync event was exported by version " +
                                                    std::to_string(version) + "; this version is " +
                                                    std::to_string(kVersion));
  }
  const auto publisher = reader.integer<std::uint8_t>();
  if (!reader.finished() || publisher > static_cast<std::uint8_t>(Publisher::gpu)) {
    throw Error(ErrorCode::bad_message, "the export of a sync event is malformed");
  }
  return static_cast<Publisher>(publisher);
}

/// Opens a file by a path of /proc. Throws Error: not_found if there is none.
core::Fd open_in_proc(const std::string& path, int flags) {
  core::Fd file(::open(path.c_str(), flags | O_CLOEXEC));
  if (file.valid()) return file;
  const int errnum = errno;
  if (errnum == ENOENT || errnum == ESRCH) {
    throw Error(ErrorCode::not_found, path + ": the sync event is gone, or its process");
  }
  core::throw_errno("cannot open the sync event " + path, errnum);
}

}  // namespace

SyncEvent::SyncEvent(const Options& options)
    : SyncEvent(options.publisher, memory::SharedMemory::create(
                                       options.name, sizeof(SyncEventWords), options.numa_node)) {}

SyncEvent::SyncEvent(Publisher publisher, memory::SharedMemory memory)
    : publisher_(publisher),
      memory_(std::move(memory)),
      words_(reinterpret_cast<SyncEventWords*>(memory_->data())) {}

SyncEvent::Export SyncEvent::export_to_process() const {
  if (!memory_) {
    throw Error(ErrorCode::not_supported, "a sync event in the caller's memory cannot be exported");
  }
  protocol::Writer writer;
  writer.integer(kMagic).integer(kVersion).integer(static_cast<std::uint8_t>(publisher_));
  return {writer.take(), memory_->fd()};
}

SyncEvent SyncEvent::import(std::span<const std::byte> blob, core::Fd fd) {
  const Publisher publisher = decode(blob);
  return {publisher, memory::SharedMemory::import(std::move(fd), sizeof(SyncEventWords))};
}

std::vector<std::byte> SyncEvent::export_in_place() const {
  if (!memory_) {
    throw Error(ErrorCode::not_supported, "a sync event in the caller's memory cannot be exported");
  }
  const struct stat file = status_of(memory_->fd());
  protocol::Writer body;
  body.integer(static_cast<std::uint32_t>(::getpid()))
      .integer(static_cast<std::uint32_t>(memory_->fd()))
      .integer(static_cast<std::uint64_t>(file.st_dev))
      .integer(static_cast<std::uint64_t>(file.st_ino))
      .integer(static_cast<std::uint8_t>(publisher_));
  return kInPlace.wrap(body.take());
}

SyncEvent SyncEvent::import_in_place(std::span<const std::byte> blob) {
  constexpr std::uint32_t kMost = std::numeric_limits<std::int32_t>::max();
  protocol::Reader reader(kInPlace.unwrap(blob));
  const auto process = reader.integer<std::uint32_t>();
  const auto descriptor = reader.integer<std::uint32_t>();
  const auto device = reader.integer<std::uint64_t>();
  const auto inode = reader.integer<std::uint64_t>();
  const auto publisher = reader.integer<std::uint8_t>();
  kInPlace.require(reader.finished(), "its body has the wrong length");
  kInPlace.require(process != 0 && process <= kMost && descriptor <= kMost,
                   "its process id or descriptor is invalid");
  kInPlace.require(publisher <= static_cast<std::uint8_t>(Publisher::gpu),
                   "its publisher is invalid");
  // O_PATH: the descriptor may be that of another file by now, whose opening could block.
  const core::Fd found = open_in_proc(
      "/proc/" + std::to_string(process) + "/fd/" + std::to_string(descriptor), O_PATH);
  const struct stat file = status_of(found.get());
  if (file.st_dev != device || file.st_ino != inode) {
    throw Error(ErrorCode::not_found, "the sync event of process " + std::to_string(process) +
                                          " is gone: its descriptor is of another file");
  }
  // The exporter names the file, and to open one of another type may have effects.
  kInPlace.require(S_ISREG(file.st_mode), "its file is not memory");
  core::Fd opened =
      open_in_proc("/proc/self/fd/" + std::to_string(found.get()), O_RDWR | O_NONBLOCK | O_NOCTTY);
  return {static_cast<Publisher>(publisher),
          memory::SharedMemory::import(std::move(opened), sizeof(SyncEventWords))};
}

void SyncEvent::set(std::uint64_t value) noexcept {
  kernels::sync_event_set(*words_, value);
  wake_sleepers();
}

std::uint64_t SyncEvent::add(std::uint64_t count) noexcept {
  const std::uint64_t before = kernels::sync_event_add(*words_, count);
  wake_sleepers();
  return before;
}

/// The publisher writes value, fences, and reads sleepers; sleep() writes sleepers, fences, and
/// reads value. So at least one of the two sees the other's write.
void SyncEvent::wake_sleepers() noexcept {
  core::full_fence();
  if (__atomic_load_n(&words_->sleepers, __ATOMIC_RELAXED) == 0) return;  // pairs with sleep()
  ::syscall(SYS_futex, futex_word(*words_), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

bool SyncEvent::wait_greater(std::uint64_t threshold, std::uint64_t mask, WaitMode how,
                             core::Duration limit) noexcept {
  return wait([threshold, mask](std::uint64_t now) { return (now & mask) > threshold; }, how,
              limit);
}

bool SyncEvent::wait_equal(std::uint64_t value, std::uint64_t mask, WaitMode how,
                           core::Duration limit) noexcept {
  return wait([value, mask](std::uint64_t now) { return ((now ^ value) & mask) == 0; }, how, limit);
}

bool SyncEvent::wait_not_equal(std::uint64_t value, std::uint64_t mask, WaitMode how,
                               core::Duration limit) noexcept {
  return wait([value, mask](std::uint64_t now) { return ((now ^ value) & mask) != 0; }, how, limit);
}

template <class Ends>
bool SyncEvent::wait(Ends ends, WaitMode how, core::Duration limit) noexcept {
  if (ends(get())) return true;
  const core::TimePoint start = core::Clock::now();
  const auto deadline =
      limit > core::TimePoint::max() - start ? core::TimePoint::max() : start + limit;
  for (std::uint32_t polls = 1;; ++polls) {
    switch (how) {
      case WaitMode::spin: core::cpu_relax(); break;
      case WaitMode::yield: std::this_thread::yield(); break;
      case WaitMode::block: sleep(ends, deadline); break;
    }
    if (ends(get())) return true;
    if (how == WaitMode::spin && polls % kSpinsPerClock != 0) continue;
    if (core::Clock::now() >= deadline) return ends(get());
  }
}

template <class Ends>
void SyncEvent::sleep(Ends ends, core::TimePoint deadline) noexcept {
  const auto longest = publisher_ == Publisher::gpu ? kSleepForGpu : kLongestSleep;
  const auto time = std::clamp(deadline - core::Clock::now(), core::Duration{}, longest);
  const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
  const timespec timeout{nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000};
  __atomic_fetch_add(&words_->sleepers, 1, __ATOMIC_RELAXED);  // pairs with wake_sleepers()
  core::full_fence();
  const std::uint64_t seen = get();
  if (!ends(seen)) {
    ::syscall(SYS_futex, futex_word(*words_), FUTEX_WAIT, static_cast<std::uint32_t>(seen),
              &timeout, nullptr, 0);
  }
  __atomic_fetch_sub(&words_->sleepers, 1, __ATOMIC_RELAXED);  // orders nothing
}

}  // namespace offload::sync
