#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/clock.hpp"
#include "core/fd.hpp"
#include "kernels/tasks/sync_event.hpp"
#include "memory/shared_memory.hpp"

namespace offload::sync {

/// The kind of publisher, which sets and adds.
enum class Publisher : std::uint8_t {
  cpu,         ///< threads of any process, which wake subscribers that sleep
  gpu,         ///< a GPU, which cannot: a subscriber that sleeps polls every 50 us
  peer = gpu,  ///< another machine, by a network card, which cannot either
};

/// The way in which a subscriber waits.
enum class WaitMode : std::uint8_t {
  spin,   ///< lowest latency; keeps the processor
  yield,  ///< yields the processor between polls
  block,  ///< sleeps in futex(2), for long waits
};

/// A 64-bit counter to wait on, shared by the threads of this process, other processes (export and
/// import), a GPU (gpu::GpuSyncEvent) and peers over the network (rdma::ExportedSyncEvent). Any
/// thread may call get(), set(), add() and the waits; they do not allocate. set() and add() make a
/// system call only if a subscriber sleeps.
class SyncEvent {
 public:
  struct Options {
    std::string name = "sync-event";  ///< shows in /proc
    Publisher publisher = Publisher::cpu;
    int numa_node = -1;  ///< of its memory; -1: any
  };

  /// Starts at 0. Throws Error.
  explicit SyncEvent(const Options& options);
  /// An event in the caller's memory, which outlives it, with the value that is there: 64 bytes, as
  /// the sleepers are counted beside the counter. Other processes see it where the memory is
  /// shared; it cannot be exported.
  SyncEvent(kernels::SyncEventWords& words, Publisher publisher) noexcept
      : publisher_(publisher), words_(&words) {}

  /// The data that another process needs for import().
  struct Export {
    std::vector<std::byte> blob;
    int fd;  ///< to be passed beside the blob; owned by this event
  };
  /// Throws Error: not_supported for an event in the caller's memory.
  [[nodiscard]] Export export_to_process() const;
  /// Maps an exported event. Throws Error: bad_message for a malformed blob, unsupported_version
  /// for one of another version, invalid_value for memory that is too small or could shrink.
  static SyncEvent import(std::span<const std::byte> blob, core::Fd fd);
  /// Describes the event for import_in_place(), without a descriptor to pass: another process of
  /// this machine opens the memory by /proc/PID/fd (proc(5)) while this event exists. That process
  /// runs as the same user, or has CAP_SYS_PTRACE, and the two see each other's process ids. Throws
  /// Error: not_supported for an event in the caller's memory.
  [[nodiscard]] std::vector<std::byte> export_in_place() const;
  /// Maps an event by its description. Throws Error: unsupported_version and bad_message as
  /// protocol::Envelope, not_found if the process or its event is gone, the error of the operating
  /// system if it cannot be opened, such as not_permitted.
  static SyncEvent import_in_place(std::span<const std::byte> blob);

  [[nodiscard]] std::uint64_t get() const noexcept { return kernels::sync_event_get(*words_); }
  void set(std::uint64_t value) noexcept;
  /// Returns the value before the addition.
  std::uint64_t add(std::uint64_t count) noexcept;

  /// Waits until get() > `threshold`; false if `limit` expires first.
  [[nodiscard]] bool wait_greater(std::uint64_t threshold, WaitMode how,
                                  core::Duration limit) noexcept {
    return wait_greater(threshold, ~std::uint64_t{0}, how, limit);
  }
  /// Waits until the bits of `mask` in get(), as a number, are greater than `threshold`; false if
  /// `limit` expires first.
  [[nodiscard]] bool wait_greater(std::uint64_t threshold, std::uint64_t mask, WaitMode how,
                                  core::Duration limit) noexcept;
  /// Waits until the bits of `mask` in get() are those in `value`; false if `limit` expires first.
  [[nodiscard]] bool wait_equal(std::uint64_t value, std::uint64_t mask, WaitMode how,
                                core::Duration limit) noexcept;
  /// Waits until the bits of `mask` in get() are others than those in `value`; false if `limit`
  /// expires first.
  [[nodiscard]] bool wait_not_equal(std::uint64_t value, std::uint64_t mask, WaitMode how,
                                    core::Duration limit) noexcept;

  [[nodiscard]] Publisher publisher() const noexcept { return publisher_; }
  /// The memory, to be registered with a device: that of the words, and what its pages have more.
  [[nodiscard]] std::span<std::byte> memory() const noexcept {
    if (memory_) return {memory_->data(), memory_->size()};
    return std::as_writable_bytes(std::span(words_, 1));
  }
  [[nodiscard]] kernels::SyncEventWords& words() const noexcept { return *words_; }

 private:
  SyncEvent(Publisher publisher, memory::SharedMemory memory);
  void wake_sleepers() noexcept;
  template <class Ends>
  bool wait(Ends ends, WaitMode how, core::Duration limit) noexcept;
  template <class Ends>
  void sleep(Ends ends, core::TimePoint deadline) noexcept;

  Publisher publisher_;
  std::optional<memory::SharedMemory> memory_;  ///< none: the words are the caller's
  kernels::SyncEventWords* words_;
};

}  // namespace offload::sync
