#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "apps/rdma_tasks/environment.hpp"
#include "memory/region.hpp"
#include "rdma/path/pairing.hpp"
#include "rdma/verbs/completion_queue.hpp"
#include "rdma/verbs/queue_pair.hpp"

namespace offload::rdma_tool {

/// Two connected RC queue pairs of one device, to which this thread posts with libibverbs, as
/// offload-server does. Its operations check every byte; each returns what it found as text, and
/// throws Error: unexpected for wrong data, io_failed with the completion's status, and what
/// Environment::wait() throws. After an Error it cannot be used. One thread.
class VerbsLoopback {
 public:
  /// Makes and connects the queue pairs. Throws Error.
  explicit VerbsLoopback(Environment& environment);
  VerbsLoopback& operator=(VerbsLoopback&&) = delete;

  /// "queue pairs 17 and 18 (RC) on mlx5_0 are connected"
  [[nodiscard]] std::string described() const;
  /// Writes messages of several sizes.
  std::string write();
  /// Sends messages of several sizes to receives, as --data-path cpu does.
  std::string send();
  /// Observes in which order plain writes of one list become visible.
  std::string observe_order();
  /// Writes data, then sets a flag by a compare-and-swap: a thread that sees the flag must see the
  /// data.
  std::string flag_by_atomic();
  /// Writes data, then writes with an immediate: its completion must report the data.
  std::string flag_by_immediate();

 private:
  /// A work request: `length` bytes from the source to the same offset of the target.
  struct Work {
    ibv_wr_opcode opcode = IBV_WR_RDMA_WRITE;
    std::size_t at = 0;
    std::size_t length = 0;
    std::uint64_t compare = 0;
    std::uint64_t swap = 0;
  };

  void post(std::span<const Work> works);
  void post_receive(std::size_t length);
  void look();
  void wait_sent(const char* what);
  void check(std::size_t length, std::uint64_t iteration, const char* after) const;
  [[nodiscard]] std::span<std::byte> source(std::size_t at, std::size_t length) const noexcept;
  [[nodiscard]] std::span<std::byte> target(std::size_t at, std::size_t length) const noexcept;
  [[nodiscard]] std::uint64_t* target_word(std::size_t at) const noexcept;

  Environment& environment_;
  memory::MemoryRegion region_;
  rdma::CompletionQueue completions_;
  rdma::QueuePair one_;
  rdma::QueuePair other_;
  std::uint64_t posted_ = 0;
  std::uint64_t sent_ = 0;
  std::uint64_t received_ = 0;
  std::uint32_t received_bytes_ = 0;  ///< of the last receive
};

}  // namespace offload::rdma_tool
