#pragma once

#include <cstdint>
#include <string>

#include "apps/rdma_tasks/device/lane.hpp"
#include "apps/rdma_tasks/environment.hpp"
#include "apps/rdma_tasks/options.hpp"
#include "apps/rdma_tasks/pattern.hpp"
#include "apps/rdma_tasks/rendezvous.hpp"
#include "core/clock.hpp"
#include "metrics/latency_histogram.hpp"

namespace offload::rdma_tool {

/// The interval at which an event-driven end polls for changes without an event: a peer's write to
/// memory or to a sync event. lib/tasks/sync uses the same.
inline constexpr core::Duration kPollInterval = std::chrono::microseconds(50);

/// The measurements of one size. `latency` is empty in a bandwidth run. `duration` is that of all
/// connections together; an end that cannot know when the peer begins and ends has none.
struct BenchmarkResult {
  std::string name;  ///< of the operation
  std::uint32_t size = 0;
  std::uint64_t operations = 0;
  core::Duration duration{};
  metrics::LatencyHistogram latency;
  std::uint64_t checked = 0;  ///< messages whose bytes this end compared
};

/// One of the benchmarks of an operation, which run one after the other for each size.
struct Variant {
  enum class Work : std::uint8_t { all, swap, add, set, get };
  const char* name;
  std::uint32_t batch;
  Work work = Work::all;
};
std::vector<Variant> variants_of(const Options& options);

/// One end's part in the benchmark of one size, over endpoints that are connected. Wrong data is an
/// Error (unexpected) with operation, iteration and offset; else it throws as Environment::wait
/// does.
class Benchmark {
 public:
  Benchmark(Environment& environment, const Options& options, const Endpoints& endpoints,
            std::uint32_t size, const Variant& variant);
  BenchmarkResult run();

 private:
  [[nodiscard]] bool is_requester() const noexcept { return options_.role == Role::requester; }
  /// Whether this end sends first, or alone.
  [[nodiscard]] bool is_sender() const noexcept {
    return is_requester() == (options_.operation != Operation::recv);
  }
  /// Returns whether the peer works on this end's memory without a notification.
  [[nodiscard]] bool is_passive() const noexcept;

  void prepare_memory();
  /// Until the peer is as far; nothing where there is none.
  void sync_peer();
  void run_operation();
  /// All of it by device functions, over each endpoint's DevicePath.
  void run_on_device();
  void launch(std::uint64_t begin, std::uint64_t end);
  DeviceWork device_work(Endpoint& endpoint, std::uint64_t begin, std::uint64_t end) const;
  void take(const DeviceOutcome& outcome, std::uint32_t connection);
  void ping_pong();
  void send_stream();
  void receive_stream();
  void run_one_sided();
  void check_memory();
  void check_words(Endpoint& endpoint);
  void publish();
  void subscribe();
  void read_then_send();
  void expect_send_of_read();

  void post(Endpoint& endpoint, std::uint64_t iteration);
  /// The message of an iteration; null for a plain write, which has no receive.
  rdma::Receive* wait_for_message(Endpoint& endpoint, std::uint64_t iteration);
  void check_message(Endpoint& endpoint, std::uint64_t iteration, rdma::Receive* message);
  void post_one_sided(Endpoint& endpoint, std::uint64_t iteration);
  void finish_one_sided(Endpoint& endpoint, std::uint64_t iteration);
  [[nodiscard]] std::uint64_t word(const Endpoint& endpoint,
                                   std::uint64_t iteration) const noexcept;

  void make(std::span<std::byte> message, const Endpoint& endpoint, bool from_requester,
            std::uint64_t iteration) const;
  void check(std::span<const std::byte> message, const Endpoint& endpoint, bool from_requester,
             std::uint64_t iteration);
  [[noreturn]] void throw_mismatch(std::uint64_t iteration, std::uint32_t connection,
                                   const Mismatch& mismatch) const;
  [[noreturn]] void throw_wrong(std::uint64_t iteration, const std::string& what) const;

  Environment& environment_;
  const Options& options_;
  const Endpoints& endpoints_;
  std::uint32_t size_;
  Variant variant_;
  BenchmarkResult result_;
  std::vector<core::TimePoint> begun_;  ///< when each endpoint's latest operation began
};

}  // namespace offload::rdma_tool
