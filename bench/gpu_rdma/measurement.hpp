#pragma once

#include <cstdint>
#include <string>

#include "bench/gpu_rdma/initiator.hpp"
#include "core/clock.hpp"

namespace offload::bench {

/// One row of the benchmark.
struct Row {
  std::string name;
  LoadKind kind;
  bool shares = false;  ///< all groups post to one queue
  std::uint32_t groups = 1;
  std::uint32_t threads = 1;  ///< that stand for the card; 0: none
  std::uint32_t batch = 1;    ///< entries a doorbell
  std::uint64_t operations = 0;
};

struct LoadOptions {
  std::uint32_t blocks = 512;  ///< of a send queue, which is what may be in flight
  bool has_inline = false;
  bool signals_each = true;
  bool yields = false;  ///< card threads leave the processor to others where there is no work
  core::Duration limit = std::chrono::seconds(20);
};

struct Measured {
  double rate;        ///< operations a second, of all groups
  double ns_a_round;  ///< of one group
};

/// Throws Error: what a group ended with, if not all was done; entries that were lost, or wrong.
Measured measure(Initiator& initiator, const Row& row, const LoadOptions& options);

}  // namespace offload::bench
