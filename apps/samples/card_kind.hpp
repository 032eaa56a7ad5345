#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "apps/samples/sample_card.hpp"
#include "rdma/queues/queue_memory.hpp"

namespace offload::samples {

/// The queues of a real card begin at a page.
constexpr std::size_t kPageBytes = 4096;

/// The model, or a real card, behind a SampleCard. One thread, except for progress().
class SampleCard::Kind {
 public:
  Kind& operator=(Kind&&) = delete;
  virtual ~Kind() = default;

  virtual std::uint32_t register_memory(std::span<std::byte> memory) = 0;
  virtual WorkQueues add_queue(std::span<std::byte> memory, const rdma::QueueSizes& sizes) = 0;
  virtual void connect(std::uint32_t one, std::uint32_t other) = 0;
  /// The work of the card's thread. Returns whether there was some.
  virtual bool progress() = 0;
  /// Returns the first fault; empty: none.
  virtual std::string fault() = 0;
};

/// Opens an mlx5 card. Throws Error.
std::unique_ptr<SampleCard::Kind> make_real_kind(const std::string& device);

}  // namespace offload::samples
