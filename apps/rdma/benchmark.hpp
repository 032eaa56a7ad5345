#pragma once

#include <cstdint>
#include <string>

#include "apps/rdma/environment.hpp"
#include "apps/rdma/options.hpp"
#include "apps/rdma/pattern.hpp"
#include "apps/rdma/rendezvous.hpp"
#include "core/clock.hpp"
#include "metrics/latency_histogram.hpp"

namespace offload::rdma_tool {

/// Nothing rings when a peer writes memory or works on an event in it: who sleeps looks so often,
/// as lib/sync does.
inline constexpr core::Duration kPeerLookInterval = std::chrono::microseconds(50);

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

/// A run of one size may be several of these, one after the other.
struct Variant {
  enum class Work : std::uint8_t { all, swap, add, set, get };
  const char* name;
  std::uint32_t batch;
  Work work = Work::all;
};
std::vector<Variant> variants_of(const Options& options);

/// Both ends' part in an operation of one size, over connections that have met. Wrong data is an
/// Error (unexpected) with operation, iteration and offset; else it throws as Environment::wait
/// does.
class Benchmark {
 public:
  Benchmark(Environment& environment, const Options& options, const Endpoints& endpoints,
            std::uint32_t size, const Variant& variant);
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
  void reach_all();
  void look_back();
  void look_at_words(Endpoint& endpoint);
  void publish();
  void subscribe();
  void read_then_send();
  void expect_send_of_read();

  void post(Endpoint& endpoint, std::uint64_t iteration);
  /// Null where the message came by a write, which nothing tells of.
  rdma::Receive* await(Endpoint& endpoint, std::uint64_t iteration);
  void accept(Endpoint& endpoint, std::uint64_t iteration, rdma::Receive* message);
  void reach(Endpoint& endpoint, std::uint64_t iteration);
  void finish_reach(Endpoint& endpoint, std::uint64_t iteration);
  [[nodiscard]] std::uint64_t word(const Endpoint& endpoint,
                                   std::uint64_t iteration) const noexcept;

  void make(std::span<std::byte> message, const Endpoint& endpoint, bool from_requester,
            std::uint64_t iteration) const;
  void check(std::span<const std::byte> message, const Endpoint& endpoint, bool from_requester,
             std::uint64_t iteration);
  [[noreturn]] void wrong(std::uint64_t iteration, const std::string& what) const;

  Environment& environment_;
  const Options& options_;
  const Endpoints& endpoints_;
  std::uint32_t size_;
  Variant variant_;
  Result result_;
  std::vector<core::TimePoint> begun_;  ///< of each endpoint's latest operation
};

}  // namespace offload::rdma_tool
