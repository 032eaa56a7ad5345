#pragma once

#include <cstdint>
#include <string>

#include "apps/rdma/meeting.hpp"
#include "apps/rdma/options.hpp"
#include "apps/rdma/pattern.hpp"
#include "apps/rdma/stage.hpp"
#include "core/clock.hpp"
#include "metrics/latency_histogram.hpp"

namespace offload::rdma_tool {

/// What came of one size. Where latency was measured, the histogram has something; bandwidth is
/// what all connections made together in `duration`; an end that cannot know when the peer began or
/// ended has none of either.
struct Result {
  std::string name;  ///< what was done
  std::uint32_t size = 0;
  std::uint64_t operations = 0;
  core::Duration duration{};
  metrics::LatencyHistogram latency;
  std::uint64_t checked = 0;  ///< messages that this end looked at, byte by byte
};

/// Both ends' part in an operation of one size, over connections that have met. Wrong data is an
/// Error (unexpected) with operation, iteration and offset; else it throws as Stage::wait does.
class Trial {
 public:
  Trial(Stage& stage, const Options& options, const Wires& wires, std::uint32_t size);
  Result run();

 private:
  [[nodiscard]] bool is_requester() const noexcept { return options_.role == Role::requester; }
  /// Whether this end's messages are what is measured.
  [[nodiscard]] bool begins() const noexcept {
    return is_requester() == (options_.operation != Operation::recv);
  }

  /// Whether the peer works on this end's memory, and nothing tells of it.
  [[nodiscard]] bool is_passive() const noexcept;
  void prepare();
  void ping_pong();
  void stream_out();
  void stream_in();
  void read_all();
  void look_back();

  void post(Wire& wire, std::uint64_t iteration);
  /// Null where the message came by a write, which nothing tells of.
  rdma::ReceiveTask* await(Wire& wire, std::uint64_t iteration);
  void accept(Wire& wire, std::uint64_t iteration, rdma::ReceiveTask* message);
  void finish_read(Wire& wire, std::uint64_t iteration);

  void make(std::span<std::byte> message, const Wire& wire, bool from_requester,
            std::uint64_t iteration) const;
  void check(std::span<const std::byte> message, const Wire& wire, bool from_requester,
             std::uint64_t iteration);
  [[noreturn]] void wrong(std::uint64_t iteration, const std::string& what) const;

  Stage& stage_;
  const Options& options_;
  const Wires& wires_;
  std::uint32_t size_;
  Result result_;
  std::vector<core::TimePoint> begun_;  ///< of each wire's latest operation
};

}  // namespace offload::rdma_tool
