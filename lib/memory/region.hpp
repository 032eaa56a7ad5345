#pragma once

#include <atomic>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "memory/access.hpp"
#include "memory/pinning.hpp"
#include "memory/range.hpp"
#include "memory/registrar.hpp"

namespace offload::memory {

struct RegionOptions {
  std::string name;  ///< for errors
  Access access = kLocalAccess;
};

/// A set of memory ranges that devices and peers may access, with their access rights and the
/// devices they are registered with. Its life: add ranges and registrars, start(), take buffers of
/// it, stop(); it may be started again.
///
/// One thread makes, starts and stops it. Functions marked "any thread" may be called from any
/// thread while it is started.
class MemoryRegion {
 public:
  /// Throws Error as check_access and add_range do.
  explicit MemoryRegion(RegionOptions options, const std::vector<Range>& ranges = {});
  MemoryRegion& operator=(MemoryRegion&&) = delete;
  /// Deregisters and unlocks. Logs an error if buffers are still in use: their memory goes away.
  ~MemoryRegion();

  /// Adds a range and returns its index. Throws Error: bad_state while started, full after
  /// kMaxRanges, not_permitted if the region has local_write and the range is not writable,
  /// invalid_value for a range that check_range refuses or that overlaps another.
  std::size_t add_range(Range range);

  /// Makes start() register every range with `registrar`, which must outlive the region. Throws
  /// Error: bad_state while started, already_exists.
  void add_registrar(Registrar& registrar);

  /// Makes start() register with it no longer. Throws Error: bad_state while started, not_found.
  void remove_registrar(Registrar& registrar);

  /// Pins the ranges (Pinning) and registers them. Throws Error: bad_state, invalid_value without a
  /// range, and what a registrar throws; then the region is stopped and nothing is registered.
  void start();

  /// Deregisters and unlocks. Throws Error: bad_state; in_use while buffers, pools or arrays of it
  /// are in use, and then it stays started. No other thread may take a buffer of it meanwhile.
  void stop();

  /// Throws Error (bad_state) unless it is started. `action` completes "...: cannot ".
  void require_started(const char* action) const;

  [[nodiscard]] const std::string& name() const noexcept { return options_.name; }
  [[nodiscard]] Access access() const noexcept { return options_.access; }
  [[nodiscard]] std::span<const Range> ranges() const noexcept { return ranges_; }

  /// Any thread.
  [[nodiscard]] bool started() const noexcept { return started_; }

  /// The index of the range that contains [address, address + length), if there is one. Any thread.
  [[nodiscard]] std::optional<std::size_t> find(const std::byte* address,
                                                std::size_t length) const noexcept;

  /// The key of the range with index `range` for the registrar's device; null while stopped, and
  /// for a registrar or range that is not this region's. Any thread.
  [[nodiscard]] const MemoryKey* key(const Registrar& registrar, std::size_t range) const noexcept {
    // In its caller: each operation asks, mostly for the only range and registrar.
    if (&registrar == sole_registrar_ && range == 0) return keys_.data();
    return key_of_any(registrar, range);
  }

  /// Counts a user (a buffer, a pool, an array), with which the region cannot stop. Relaxed: it
  /// publishes nothing. Any thread.
  void add_user() noexcept { users_.fetch_add(1, std::memory_order_relaxed); }
  /// Release, pairs with the acquire of users(): accesses to the memory end before stop() unlocks
  /// it. Any thread.
  void remove_user() noexcept { users_.fetch_sub(1, std::memory_order_release); }
  [[nodiscard]] std::size_t users() const noexcept {
    return users_.load(std::memory_order_acquire);
  }

 private:
  [[nodiscard]] std::string described() const { return "memory region '" + options_.name + "'"; }
  [[nodiscard]] const MemoryKey* key_of_any(const Registrar& registrar,
                                            std::size_t range) const noexcept;
  void require_stopped(const char* action) const;
  void register_all();
  [[nodiscard]] MemoryKey register_with(Registrar& registrar, std::size_t range) const;
  void deregister_all() noexcept;

  RegionOptions options_;
  std::vector<Range> ranges_;
  std::vector<Registrar*> registrars_;
  std::vector<Pinning> pinnings_;  ///< only while started
  /// Only while started. The key of range r and registrar g is at r * registrars_.size() + g.
  std::vector<MemoryKey> keys_;
  /// Only while started, and if there is one range and one registrar.
  const Registrar* sole_registrar_ = nullptr;
  bool started_ = false;
  std::atomic<std::size_t> users_{0};
};

}  // namespace offload::memory
