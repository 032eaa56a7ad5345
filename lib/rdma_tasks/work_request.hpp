#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <span>

#include "core/status.hpp"
#include "rdma/verbs/protection_domain.hpp"
#include "rdma_tasks/operation.hpp"

namespace offload::rdma {

/// Makes scatter elements of a destination's tailrooms, up to `most` bytes: `count` is the number
/// of elements used, `length` their bytes. invalid_value for too many elements or unregistered
/// memory, not_permitted for a region without local_write.
core::Status scatter(const RdmaRegistrar& registrar, const memory::Buffer* destination,
                     std::uint64_t most, std::span<ibv_sge> sg_list, int& count,
                     std::uint64_t& length) noexcept;

/// The limits of work requests of a connection.
struct WorkRequestLimits {
  const RdmaRegistrar* registrar;
  std::uint32_t max_inline_data;
  bool has_reads = false;
  bool has_atomics = false;
};

/// Turns the operations of a connection into work requests (ibv_send_wr, ibv_post_send(3)), and
/// completions into the operations' results. Allocates nothing. One thread.
class WorkRequestBuilder {
 public:
  WorkRequestBuilder(const RdmaRegistrar& registrar, std::uint32_t max_inline_data) noexcept
      : limits_{&registrar, max_inline_data} {}

  /// Sets whether the connection has reads and atomics. Without them, fill() returns not_supported.
  void allow(bool reads, bool atomics) noexcept {
    limits_.has_reads = reads;
    limits_.has_atomics = atomics;
  }

  /// Fills `request`, whose sg_list has room for `max_sge` elements and which has none and no flags
  /// yet, for any operation but a receive. Errors: see Connection.
  core::Status fill(RdmaTask& task, std::size_t max_sge, ibv_send_wr& request) const noexcept;

  /// Delivers the results of an operation that succeeded: what was read or received becomes data of
  /// its destination. `completion`: null for an unsignalled send.
  static void finish(RdmaTask& task, const ibv_wc* completion) noexcept {
    using Kind = RdmaTask::Kind;
    if (task.kind_ == Kind::send || task.kind_ == Kind::write) return;  // here, as most are
    deliver(task, completion);
  }

 private:
  core::Status fill_another(RdmaTask& task, std::size_t max_sge,
                            ibv_send_wr& request) const noexcept;
  static void deliver(RdmaTask& task, const ibv_wc* completion) noexcept;

  WorkRequestLimits limits_;
};

}  // namespace offload::rdma
