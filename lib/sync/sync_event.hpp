#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/clock.hpp"
#include "core/fd.hpp"
#include "kernels/sync_event.hpp"
#include "memory/shared_memory.hpp"

namespace offload::sync {

/// Who sets and adds.
enum class Publisher : std::uint8_t {
  cpu,  ///< threads and processes: they wake subscribers that sleep
  gpu,  ///< it can wake nobody: a subscriber that sleeps looks by itself every 50 us
};

/// How a subscriber waits.
enum class Wait : std::uint8_t {
  spin,   ///< lowest latency; keeps the processor
  yield,  ///< lets others that are ready run between two looks
  block,  ///< sleeps: for long waits
};

/// A counter to wait on, shared by the threads of this process, other processes (export and import)
/// and a GPU (words(), registered with it). All calls from any thread; none allocates. Publishing
/// makes a system call only where a subscriber sleeps.
class SyncEvent {
 public:
  struct Options {
    std::string name = "sync-event";  ///< shows in /proc
    Publisher publisher = Publisher::cpu;
    int numa_node = -1;  ///< where its memory is; -1: anywhere
  };

  /// Starts at 0. Throws Error.
  explicit SyncEvent(const Options& options);

  /// What another process needs: `blob` says what it is, `fd` is passed beside it.
  struct Export {
    std::vector<std::byte> blob;
    int fd;  ///< stays this event's
  };
  [[nodiscard]] Export export_to_process() const;
  /// Throws Error: bad_message for a blob that is none, unsupported_version for a newer one,
  /// invalid_value for memory that is too small or could shrink.
  static SyncEvent import(std::span<const std::byte> blob, core::Fd fd);

  [[nodiscard]] std::uint64_t get() const noexcept { return kernels::sync_event_get(*words_); }
  void set(std::uint64_t value) noexcept;
  /// Returns the value before.
  std::uint64_t add(std::uint64_t count) noexcept;

  /// Waits until get() > `threshold`; false if that did not come within `limit`.
  [[nodiscard]] bool wait_greater(std::uint64_t threshold, Wait how, core::Duration limit) noexcept;

  [[nodiscard]] Publisher publisher() const noexcept { return publisher_; }
  /// For a device to be given access to; the words are at its start.
  [[nodiscard]] const memory::SharedMemory& memory() const noexcept { return memory_; }
  [[nodiscard]] kernels::SyncEventWords& words() const noexcept { return *words_; }

 private:
  SyncEvent(Publisher publisher, memory::SharedMemory memory);
  void wake_sleepers() noexcept;
  void sleep(std::uint64_t threshold, core::TimePoint deadline) noexcept;

  Publisher publisher_;
  memory::SharedMemory memory_;
  kernels::SyncEventWords* words_;
};

}  // namespace offload::sync
