#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "kernels/rdma/queue_pair.hpp"

namespace offload::kernels::rdma::test {

/// A queue pair that belongs to the model of a card.
struct ModelPair {
  SendQueue send;
  ReceiveQueue receive;
};

/// Runs the model of a card on a separate thread, for tests that a CUDA compiler compiles too.
class ModelCard {
 public:
  static constexpr std::uint32_t kPolite = 0;

  /// `seed`: selects its rudeness, or kPolite.
  explicit ModelCard(std::uint32_t seed = kPolite);
  ModelCard(const ModelCard&) = delete;
  ModelCard& operator=(const ModelCard&) = delete;
  ~ModelCard();

  static std::size_t bytes_for(std::uint32_t blocks, std::uint32_t receives);

  /// Returns the key of memory that may be used in every way. Call this and all below before
  /// start().
  std::uint32_t add_memory(void* bytes, std::size_t size);
  /// Returns the key of memory that a peer may only read.
  std::uint32_t add_readable(void* bytes, std::size_t size);
  ModelPair add(void* memory, std::uint32_t blocks, std::uint32_t receives, bool has_record = true);
  /// Adds a queue pair for raw packets, of which the card needs `least_inline` bytes inline.
  ModelPair add_raw(void* memory, std::uint32_t blocks, std::uint32_t receives,
                    std::uint32_t least_inline);
  void connect(const ModelPair& one, const ModelPair& other);
  void set_fail_without_receive();

  void start();
  /// Ends the thread; returns the violation of the format, or nothing.
  std::string stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace offload::kernels::rdma::test
