#include "rdma_tasks/work_request.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>

namespace offload::rdma {
namespace {

using core::ErrorCode;
using core::Status;
using memory::Access;
using memory::Buffer;

/// The size of atomics and sync events, bytes.
constexpr std::uint64_t kWord = sizeof(std::uint64_t);

/// The address and rkey of `length` bytes of the peer's memory; invalid_value if they do not fit,
/// not_permitted if the peer did not grant `access`.
Status resolve(const RemoteAddress& at, std::uint64_t length, Access access,
               std::uint64_t& remote_addr, std::uint32_t& rkey) noexcept {
  const memory::RemoteRange& range = at.range;
  if (!includes(at.granted, access)) return ErrorCode::not_permitted;
  if (at.offset > range.length || length > range.length - at.offset) {
    return ErrorCode::invalid_value;
  }
  remote_addr = range.address + at.offset;
  rkey = range.key;
  return {};
}

/// The same for one word, which must be aligned to its size.
Status resolve_word(const RemoteAddress& at, Access access, std::uint64_t& remote_addr,
                    std::uint32_t& rkey) noexcept {
  const Status status = resolve(at, kWord, access, remote_addr, rkey);
  return status.ok() && remote_addr % kWord != 0 ? ErrorCode::invalid_value : status;
}

/// Returns the access that the owner of a sync event must grant.
Access access_of(RemoteSyncEventTask::Action action) noexcept {
  using Action = RemoteSyncEventTask::Action;
  if (action == Action::get) return Access::remote_read;
  return action == Action::set ? Access::remote_write : Access::remote_atomic;
}

ibv_sge element(const std::byte* address, std::uint64_t length,
                const memory::MemoryKey* key) noexcept {
  return {reinterpret_cast<std::uint64_t>(address), static_cast<std::uint32_t>(length),
          key == nullptr ? 0 : key->local};
}

/// The element of a sync event's scratch word; its length is 0 if the device cannot use it.
ibv_sge scratch_of(const Buffer* scratch, const RdmaRegistrar& registrar) noexcept {
  if (scratch == nullptr || scratch->dataroom().size() < kWord) return {};
  const memory::MemoryRegion& region = scratch->region();
  const memory::MemoryKey* const key = region.key(registrar, scratch->range());
  if (key == nullptr || !includes(region.access(), memory::Access::local_write) ||
      region.ranges()[scratch->range()].location == memory::Location::device) {
    return {};
  }
  return element(scratch->dataroom().data(), kWord, key);
}

/// Returns whether the processor can access all data of a source.
bool is_in_host(const Buffer* source) noexcept {
  for (; source != nullptr; source = source->next()) {
    const bool in_host = memory::is_in_host(source->memory().location);
    if (!in_host && !source->data().empty()) return false;
  }
  return true;
}

void set_immediate(const std::optional<std::uint32_t>& immediate, ibv_wr_opcode without,
                   ibv_wr_opcode with, ibv_send_wr& request) noexcept {
  request.opcode = immediate ? with : without;
  if (immediate) request.imm_data = htonl(*immediate);
}

}  // namespace

Status scatter(const RdmaRegistrar& registrar, const Buffer* destination, std::uint64_t most,
               std::span<ibv_sge> sg_list, int& count, std::uint64_t& length) noexcept {
  length = 0;
  for (; destination != nullptr && length != most; destination = destination->next()) {
    const auto room = destination->tailroom();
    if (room.empty()) continue;
    if (static_cast<std::size_t>(count) == sg_list.size()) return ErrorCode::invalid_value;
    const memory::MemoryRegion& region = destination->region();
    const memory::MemoryKey* const key = region.key(registrar, destination->range());
    if (key == nullptr) return ErrorCode::invalid_value;
    if (!includes(region.access(), memory::Access::local_write)) return ErrorCode::not_permitted;
    const std::uint64_t part = std::min<std::uint64_t>(room.size(), most - length);
    sg_list[static_cast<std::size_t>(count++)] = element(room.data(), part, key);
    length += part;
  }
  return {};
}

namespace {

/// A work request that is being filled. Local to this file, so that the compiler makes one function
/// for each operation.
class Filler {
 public:
  Filler(const WorkRequestLimits& limits, std::size_t max_sge, ibv_send_wr& request) noexcept
      : limits_(limits), max_sge_(max_sge), request_(request) {}

  Status fill(const SendTask& task) noexcept {
    set_immediate(task.immediate, IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, request_);
    if (task.solicited) request_.send_flags |= IBV_SEND_SOLICITED;
    return gather(task.source).status;
  }
  Status fill(const WriteTask& task) noexcept {
    set_immediate(task.immediate, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, request_);
    const Gathered message = gather(task.source);
    if (!message.status.ok()) return message.status;
    return resolve(task.to, message.length, Access::remote_write, request_.wr.rdma.remote_addr,
                   request_.wr.rdma.rkey);
  }

  Status fill(const ReadTask& task) noexcept {
    if (!limits_.has_reads) return ErrorCode::not_supported;
    if (task.length > kMaxMessage) return ErrorCode::invalid_value;
    request_.opcode = IBV_WR_RDMA_READ;
    std::uint64_t room = 0;
    const Status status = scatter(*limits_.registrar, task.destination, task.length, sg_list(),
                                  request_.num_sge, room);
    if (!status.ok()) return status;
    if (room != task.length) return ErrorCode::invalid_value;
    return resolve(task.from, task.length, Access::remote_read, request_.wr.rdma.remote_addr,
                   request_.wr.rdma.rkey);
  }

  Status fill_atomic(Buffer* destination, const RemoteAddress& at) noexcept {
    if (!limits_.has_atomics) return ErrorCode::not_supported;
    std::uint64_t room = 0;
    const Status status =
        scatter(*limits_.registrar, destination, kWord, sg_list(), request_.num_sge, room);
    if (!status.ok()) return status;
    if (room != kWord) return ErrorCode::invalid_value;
    return resolve_word(at, Access::remote_atomic, request_.wr.atomic.remote_addr,
                        request_.wr.atomic.rkey);
  }

  Status fill(const CompareAndSwapTask& task) noexcept {
    request_.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
    request_.wr.atomic.compare_add = task.compare;
    request_.wr.atomic.swap = task.swap;
    return fill_atomic(task.destination, task.at);
  }

  Status fill(const FetchAndAddTask& task) noexcept {
    request_.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
    request_.wr.atomic.compare_add = task.add;
    return fill_atomic(task.destination, task.at);
  }

  Status fill(const RemoteSyncEventTask& task) noexcept {
    using Action = RemoteSyncEventTask::Action;
    if (task.action > Action::add) return ErrorCode::invalid_value;
    if (task.action == Action::get && !limits_.has_reads) return ErrorCode::not_supported;
    if (task.action == Action::add && !limits_.has_atomics) return ErrorCode::not_supported;
    std::uint64_t address = 0;
    std::uint32_t rkey = 0;
    if (const Status status = resolve_word(task.event, access_of(task.action), address, rkey);
        !status.ok()) {
      return status;
    }
    const ibv_sge scratch = scratch_of(task.scratch, *limits_.registrar);
    if (scratch.length == 0) return ErrorCode::invalid_value;
    request_.sg_list[0] = scratch;
    request_.num_sge = 1;
    if (task.action == Action::add) {
      request_.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
      request_.wr.atomic = {address, task.argument, 0, rkey};
      return {};
    }
    request_.opcode = task.action == Action::set ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
    request_.wr.rdma = {address, rkey};
    if (task.action == Action::set) {
      std::memcpy(task.scratch->dataroom().data(), &task.argument, kWord);
      if (kWord <= limits_.max_inline_data) request_.send_flags |= IBV_SEND_INLINE;
    }
    return {};
  }

 private:
  struct Gathered {
    Status status;
    std::uint64_t length;
  };

  /// The data of a message.
  Gathered gather(const Buffer* source) noexcept {
    if (source == nullptr || source->next() != nullptr || source->data().empty()) {
      return gather_list(source);
    }
    const auto data = source->data();  // in one piece, as most are
    const memory::MemoryKey* const key = source->region().key(*limits_.registrar, source->range());
    if (max_sge_ == 0 || data.size() > kMaxMessage) return {ErrorCode::invalid_value, 0};
    request_.sg_list[0] = element(data.data(), data.size(), key);
    request_.num_sge = 1;
    return gathered(source, data.size(), key != nullptr);
  }
  [[gnu::noinline]] Gathered gather_list(const Buffer* source) noexcept {
    ibv_sge* next = request_.sg_list;
    const ibv_sge* const end = next + max_sge_;
    bool registered = true;
    std::uint64_t sum = 0;
    for (const Buffer* piece = source; piece != nullptr; piece = piece->next()) {
      const auto data = piece->data();
      if (data.empty()) continue;
      if (next == end) return {ErrorCode::invalid_value, 0};
      const memory::MemoryKey* const key = piece->region().key(*limits_.registrar, piece->range());
      registered = registered && key != nullptr;
      sum += data.size();
      if (sum > kMaxMessage) return {ErrorCode::invalid_value, 0};  // before it is cut off
      *next++ = element(data.data(), data.size(), key);
    }
    request_.num_sge = static_cast<int>(next - request_.sg_list);
    return gathered(source, sum, registered);
  }
  /// Short data that the processor reaches travels in the work request, and needs no registration
  /// (IBV_SEND_INLINE: the L_Key is not checked).
  Gathered gathered(const Buffer* source, std::uint64_t sum, bool registered) noexcept {
    if (sum <= limits_.max_inline_data && is_in_host(source)) {
      if (sum != 0) request_.send_flags |= IBV_SEND_INLINE;
      return {{}, sum};
    }
    return {registered ? Status() : ErrorCode::invalid_value, sum};
  }

  [[nodiscard]] std::span<ibv_sge> sg_list() const noexcept { return {request_.sg_list, max_sge_}; }

  const WorkRequestLimits& limits_;
  std::size_t max_sge_;
  ibv_send_wr& request_;
};

}  // namespace

/// Separate from the others: most are messages, and their function must stay short.
Status WorkRequestBuilder::fill(RdmaTask& task, std::size_t max_sge,
                                ibv_send_wr& request) const noexcept {
  Filler filler(limits_, max_sge, request);
  switch (task.kind_) {
    case RdmaTask::Kind::write: return filler.fill(static_cast<WriteTask&>(task));
    case RdmaTask::Kind::send: return filler.fill(static_cast<SendTask&>(task));
    default: return fill_another(task, max_sge, request);
  }
}

Status WorkRequestBuilder::fill_another(RdmaTask& task, std::size_t max_sge,
                                        ibv_send_wr& request) const noexcept {
  Filler filler(limits_, max_sge, request);
  switch (task.kind_) {
    case RdmaTask::Kind::read: return filler.fill(static_cast<ReadTask&>(task));
    case RdmaTask::Kind::compare_and_swap:
      return filler.fill(static_cast<CompareAndSwapTask&>(task));
    case RdmaTask::Kind::fetch_and_add: return filler.fill(static_cast<FetchAndAddTask&>(task));
    case RdmaTask::Kind::sync_event: return filler.fill(static_cast<RemoteSyncEventTask&>(task));
    case RdmaTask::Kind::send:
    case RdmaTask::Kind::write:
    case RdmaTask::Kind::receive: break;
  }
  return ErrorCode::unexpected;
}

void WorkRequestBuilder::deliver(RdmaTask& task, const ibv_wc* completion) noexcept {
  switch (task.kind_) {
    case RdmaTask::Kind::receive:
      if (completion == nullptr) break;
      static_cast<void>(static_cast<ReceiveTask&>(task).take(*completion));
      break;
    case RdmaTask::Kind::read: {
      const auto& read = static_cast<ReadTask&>(task);
      append(read.destination, read.length);
      break;
    }
    case RdmaTask::Kind::compare_and_swap:
      append(static_cast<CompareAndSwapTask&>(task).destination, kWord);
      break;
    case RdmaTask::Kind::fetch_and_add:
      append(static_cast<FetchAndAddTask&>(task).destination, kWord);
      break;
    case RdmaTask::Kind::sync_event: {
      auto& event = static_cast<RemoteSyncEventTask&>(task);
      if (event.action == RemoteSyncEventTask::Action::set) break;
      std::memcpy(&event.result, event.scratch->dataroom().data(), sizeof event.result);
      break;
    }
    case RdmaTask::Kind::send:
    case RdmaTask::Kind::write: break;
  }
}

}  // namespace offload::rdma
