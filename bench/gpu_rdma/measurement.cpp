#include "bench/gpu_rdma/measurement.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <span>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "softcard/card/fast_card.hpp"

namespace offload::bench {
namespace {

using offload::rdma::QueuePairMemory;
using offload::rdma::model::FastCard;

constexpr std::uint32_t kReceives = 8;
constexpr std::uint32_t kFirstNumber = 0x40;

/// The data that a group reads and writes: cache lines that no other group uses.
struct alignas(64) Payload {
  std::uint8_t local[192];
  std::uint8_t remote[64];
  alignas(64) std::uint64_t signal;
};

/// Threads that stand for the card, until they are stopped.
class Cards {
 public:
  Cards(std::span<const QueuePairMemory> queues, std::uint32_t threads, bool yields)
      : cards_(threads) {
    // Neighbours talk to each other, so they have one thread.
    for (std::size_t i = 0; i < queues.size() && threads != 0; i += 2) {
      FastCard& card = cards_[i / 2 % threads];
      const std::size_t one = card.add(queues[i]);
      if (i + 1 < queues.size()) card.connect(one, card.add(queues[i + 1]));
    }
    for (FastCard& card : cards_) {
      threads_.emplace_back([this, &card, yields] {
        while (!ends_.load(std::memory_order_relaxed)) {
          if (!card.progress() && yields) std::this_thread::yield();
        }
      });
    }
  }
  Cards(const Cards&) = delete;
  Cards& operator=(const Cards&) = delete;
  ~Cards() { stop(); }

  void stop() {
    ends_ = true;
    threads_.clear();
  }
  [[nodiscard]] std::uint64_t entries() const {
    std::uint64_t sum = 0;
    for (const FastCard& card : cards_) sum += card.entries();
    return sum;
  }
  [[nodiscard]] std::uint64_t faults() const {
    std::uint64_t sum = 0;
    for (const FastCard& card : cards_) sum += card.faults();
    return sum;
  }

 private:
  std::vector<FastCard> cards_;
  std::atomic<bool> ends_{false};
  std::vector<std::jthread> threads_;
};

const char* name_of(rdma::WorkResult result) {
  switch (result) {
    case rdma::WorkResult::done: return "done";
    case rdma::WorkResult::pending: return "pending";
    case rdma::WorkResult::invalid: return "invalid";
    case rdma::WorkResult::failed: return "failed";
    case rdma::WorkResult::timed_out: return "timed out";
  }
  return "unknown";
}

/// The load in the initiator's memory, and the handles for the cards.
Load lay_out(Initiator& initiator, const Row& row, const LoadOptions& options,
             std::vector<QueuePairMemory>& queues) {
  const offload::rdma::QueueSizes sizes{options.blocks, kReceives};
  const std::size_t bytes = offload::rdma::queue_memory_bytes(sizes);
  const std::uint32_t pairs = row.shares ? 1 : row.groups;
  auto* const memory = static_cast<std::byte*>(initiator.allocate(pairs * bytes));
  auto* const payloads = static_cast<Payload*>(initiator.allocate(pairs * sizeof(Payload)));
  auto* const parts = static_cast<Part*>(initiator.allocate(pairs * sizeof(Part)));
  for (std::uint32_t i = 0; i < pairs; ++i) {
    queues.push_back(
        offload::rdma::lay_out_queues({memory + i * bytes, bytes}, sizes, kFirstNumber + i));
    Payload& peer = payloads[(i ^ 1U) < pairs ? i ^ 1U : i];
    std::fill_n(payloads[i].local, 64, static_cast<std::uint8_t>(i + 1));
    parts[i] = {queues[i].send,           queues[i].receive,        payloads[i].local,
                address_of(&peer.remote), address_of(&peer.signal), &payloads[i].signal};
  }
  Load load{};
  load.kind = row.kind;
  load.parts = parts;
  if (row.shares) {
    load.shared =
        static_cast<rdma::SharedSendState*>(initiator.allocate_own(sizeof(rdma::SharedSendState)));
    load.marks =
        static_cast<std::uint64_t*>(initiator.allocate_own(options.blocks * sizeof(std::uint64_t)));
  }
  load.operations = std::max<std::uint64_t>(row.operations / row.batch, 1) * row.batch;
  load.batch = row.batch;
  load.has_inline = options.has_inline;
  load.signals_each = options.signals_each;
  load.limit_ns = static_cast<std::uint64_t>(std::chrono::nanoseconds(options.limit).count());
  load.outcomes = static_cast<Outcome*>(initiator.allocate(row.groups * sizeof(Outcome)));
  return load;
}

}  // namespace

Measured measure(Initiator& initiator, const Row& row, const LoadOptions& options) {
  initiator.clear();
  std::vector<QueuePairMemory> queues;
  const Load load = lay_out(initiator, row, options, queues);
  Cards cards(queues, row.threads, options.yields);
  initiator.start(load, row.groups);
  initiator.join();
  cards.stop();

  std::uint64_t begin = load.outcomes[0].begin;
  std::uint64_t end = 0;
  for (std::uint32_t i = 0; i < row.groups; ++i) {
    const Outcome& outcome = load.outcomes[i];
    if (outcome.result != rdma::WorkResult::done || cards.faults() != 0) {
      throw core::Error(core::ErrorCode::unexpected,
                        fmt::format("{}: group {} {}; faults of entries: {}", row.name, i,
                                    name_of(outcome.result), cards.faults()));
    }
    begin = std::min(begin, outcome.begin);
    end = std::max(end, outcome.end);
  }
  const std::uint64_t entries =
      load.operations * row.groups * (row.kind == LoadKind::signal ? 2 : 1);
  if (row.threads != 0 && cards.entries() != entries) {
    throw core::Error(
        core::ErrorCode::unexpected,
        fmt::format("{}: {} of {} entries were carried out", row.name, cards.entries(), entries));
  }
  const auto elapsed = static_cast<double>(end - begin);
  return {static_cast<double>(load.operations * row.groups) / elapsed * 1e9,
          elapsed / static_cast<double>(load.operations)};
}

}  // namespace offload::bench
