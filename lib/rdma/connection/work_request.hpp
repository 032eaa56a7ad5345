#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <span>

#include "core/status.hpp"
#include "rdma/connection/operation.hpp"
#include "rdma/verbs/protection_domain.hpp"

namespace offload::rdma {

/// The most bytes of a message: 2^31 (max_msg_sz of ibv_query_port(3)).
inline constexpr std::uint64_t kMaxMessage = 1U << 31;

/// Makes scatter elements of a destination's tailrooms, up to `most` bytes: `count` is the number
/// of elements used, `length` their bytes. invalid_value for too many elements or unregistered
/// memory, not_permitted for a region without local_write.
core::Status scatter(const Registrar& registrar, const memory::Buffer* destination,
                     std::uint64_t most, std::span<ibv_sge> sg_list, int& count,
                     std::uint64_t& length) noexcept;

/// Turns the operations of a connection into work requests (ibv_send_wr, ibv_post_send(3)), and
/// completions into the operations' results. Allocates nothing. One thread.
class WorkRequestBuilder {
 public:
  WorkRequestBuilder(const Registrar& registrar, std::uint32_t max_inline_data) noexcept
      : registrar_(&registrar), max_inline_data_(max_inline_data) {}

  /// Whether the connection has reads and atomics. Without them, fill() says not_supported.
  void allow(bool reads, bool atomics) noexcept {
    has_reads_ = reads;
    has_atomics_ = atomics;
  }

  /// Fills `request`, whose sg_list has room for `max_sge` elements and which has none and no flags
  /// yet, for any operation but a receive. Errors: see Connection.
  core::Status fill(Operation& task, std::size_t max_sge, ibv_send_wr& request) noexcept;

  /// Delivers the results of an operation that succeeded: what was read or received becomes data of
  /// its destination. `completion`: null for an unsignalled send.
  static void finish(Operation& task, const ibv_wc* completion) noexcept;

 private:
  core::Status fill(const SendTask& task) noexcept;
  core::Status fill(const WriteTask& task) noexcept;
  core::Status fill(const ReadTask& task) noexcept;
  core::Status fill(const CompareAndSwapTask& task) noexcept;
  core::Status fill(const FetchAndAddTask& task) noexcept;
  core::Status fill(const RemoteSyncEventTask& task) noexcept;
  core::Status fill_atomic(memory::Buffer* destination, const RemoteAddress& at) noexcept;
  core::Status gather(const memory::Buffer* source, std::uint64_t& length) noexcept;
  [[nodiscard]] std::span<ibv_sge> sg_list() const noexcept {
    return {request_->sg_list, max_sge_};
  }

  const Registrar* registrar_;
  std::uint32_t max_inline_data_;
  bool has_reads_ = false;
  bool has_atomics_ = false;
  std::size_t max_sge_ = 0;         ///< during fill()
  ibv_send_wr* request_ = nullptr;  ///< during fill()
};

}  // namespace offload::rdma
