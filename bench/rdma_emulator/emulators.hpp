#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <span>
#include <vector>

#include "bench/rdma_emulator/nothing_device.hpp"
#include "rdma/emulator/queue_emulator.hpp"

namespace offload::bench {

struct alignas(rdma::kQueueAlignment) QueueLine {
  std::byte bytes[rdma::kQueueAlignment];
};

/// Lines of memory for `count` queues of `depth` blocks.
inline std::size_t lines_of(std::uint32_t count, std::uint32_t depth) {
  return count * rdma::queue_memory_bytes({depth, 8}) / sizeof(QueueLine);
}

/// Queues with their emulators, all of one engine, on the device that does nothing.
class Emulators {
 public:
  /// `memory`: lines_of(count, depth), which outlive it. Throws Error.
  Emulators(std::span<QueueLine> memory, std::uint32_t count, std::uint32_t depth) {
    rdma::QueuePairOptions options;
    options.max_send_wr = depth;
    const std::size_t each = memory.size() / count;
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto& pair = pairs_.emplace_back(domain_, loop_.queue(), loop_.queue(), options);
      queues.push_back(rdma::lay_out_queues(std::as_writable_bytes(memory.subspan(i * each, each)),
                                            {depth, 8}, pair.qp_num()));
      auto& emulator =
          emulators_.emplace_back(rdma::QueueEmulatorParts{domain_, loop_, pair}, queues.back());
      emulator.connect(engine);
      emulator.start();
      emulator.start_sends();
    }
  }
  Emulators(const Emulators&) = delete;
  Emulators& operator=(const Emulators&) = delete;
  ~Emulators() {
    for (auto& emulator : emulators_) emulator.stop();
  }

 private:
  rdma::DeviceContext device_{kNothingDevice};
  rdma::ProtectionDomain domain_{device_};

 public:
  progress::Engine engine;
  std::vector<rdma::QueuePairMemory> queues;

 private:
  rdma::CompletionLoop loop_{device_, engine, 1U << 20};
  std::list<rdma::QueuePair> pairs_;
  std::list<rdma::QueueEmulator> emulators_;
};

}  // namespace offload::bench
