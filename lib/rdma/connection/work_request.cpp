#include "rdma/connection/work_request.hpp"

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

ibv_sge element(const std::byte* address, std::uint64_t length, const memory::Key* key) noexcept {
  return {reinterpret_cast<std::uint64_t>(address), static_cast<std::uint32_t>(length),
          key == nullptr ? 0 : key->local};
}

/// The element of a sync event's scratch word; its length is 0 if the device cannot use it.
ibv_sge scratch_of(const Buffer* scratch, const Registrar& registrar) noexcept {
  if (scratch == nullptr || scratch->dataroom().size() < kWord) return {};
  const memory::MemoryRegion& region = scratch->region();
  const memory::Key* const key = region.key(registrar, scratch->range());
  if (key == nullptr || !includes(region.access(), memory::Access::local_write) ||
      region.ranges()[scratch->range()].location == memory::Location::device) {
    return {};
  }
  return element(scratch->dataroom().data(), kWord, key);
}

/// What the owner of a sync event has to grant.
Access access_of(RemoteSyncEventTask::Action action) noexcept {
  using Action = RemoteSyncEventTask::Action;
  if (action == Action::get) return Access::remote_read;
  return action == Action::set ? Access::remote_write : Access::remote_atomic;
}

void set_immediate(const std::optional<std::uint32_t>& immediate, ibv_wr_opcode without,
                   ibv_wr_opcode with, ibv_send_wr& request) noexcept {
  request.opcode = immediate ? with : without;
  if (immediate) request.imm_data = htonl(*immediate);
}

}  // namespace

Status scatter(const Registrar& registrar, const Buffer* destination, std::uint64_t most,
               std::span<ibv_sge> sg_list, int& count, std::uint64_t& length) noexcept {
  length = 0;
  for (; destination != nullptr && length != most; destination = destination->next()) {
    const auto room = destination->tailroom();
    if (room.empty()) continue;
    if (static_cast<std::size_t>(count) == sg_list.size()) return ErrorCode::invalid_value;
    const memory::MemoryRegion& region = destination->region();
    const memory::Key* const key = region.key(registrar, destination->range());
    if (key == nullptr) return ErrorCode::invalid_value;
    if (!includes(region.access(), memory::Access::local_write)) return ErrorCode::not_permitted;
    const std::uint64_t part = std::min<std::uint64_t>(room.size(), most - length);
    sg_list[static_cast<std::size_t>(count++)] = element(room.data(), part, key);
    length += part;
  }
  return {};
}

Status WorkRequestBuilder::fill(Operation& task, std::size_t max_sge,
                                ibv_send_wr& request) noexcept {
  max_sge_ = max_sge;
  request_ = &request;
  switch (task.kind_) {
    case Operation::Kind::send: return fill(static_cast<SendTask&>(task));
    case Operation::Kind::write: return fill(static_cast<WriteTask&>(task));
    case Operation::Kind::read: return fill(static_cast<ReadTask&>(task));
    case Operation::Kind::compare_and_swap: return fill(static_cast<CompareAndSwapTask&>(task));
    case Operation::Kind::fetch_and_add: return fill(static_cast<FetchAndAddTask&>(task));
    case Operation::Kind::sync_event: return fill(static_cast<RemoteSyncEventTask&>(task));
    case Operation::Kind::receive: break;
  }
  return ErrorCode::unexpected;
}

/// Makes gather elements of a source's data. Data of at most max_inline_data bytes travels in the
/// work request and needs no registration (IBV_SEND_INLINE: the L_Key is not checked).
Status WorkRequestBuilder::gather(const Buffer* source, std::uint64_t& length) noexcept {
  bool in_host = true;
  bool registered = true;
  std::size_t count = 0;
  std::uint64_t sum = 0;
  for (; source != nullptr; source = source->next()) {
    const auto data = source->data();
    if (data.empty()) continue;
    if (count == max_sge_) return ErrorCode::invalid_value;
    const memory::MemoryRegion& region = source->region();
    const memory::Key* const key = region.key(*registrar_, source->range());
    in_host = in_host && region.ranges()[source->range()].location != memory::Location::device;
    registered = registered && key != nullptr;
    sum += data.size();
    if (data.size() > kMaxMessage || sum > kMaxMessage) return ErrorCode::invalid_value;
    request_->sg_list[count++] = element(data.data(), data.size(), key);
  }
  length = sum;
  request_->num_sge = static_cast<int>(count);
  const bool inlined = in_host && sum <= max_inline_data_;
  if (inlined && sum != 0) request_->send_flags |= IBV_SEND_INLINE;
  return inlined || registered ? Status() : ErrorCode::invalid_value;
}

Status WorkRequestBuilder::fill(const SendTask& task) noexcept {
  set_immediate(task.immediate, IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, *request_);
  if (task.solicited) request_->send_flags |= IBV_SEND_SOLICITED;
  std::uint64_t length = 0;
  return gather(task.source, length);
}

Status WorkRequestBuilder::fill(const WriteTask& task) noexcept {
  set_immediate(task.immediate, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, *request_);
  std::uint64_t length = 0;
  if (const Status status = gather(task.source, length); !status.ok()) return status;
  return resolve(task.to, length, Access::remote_write, request_->wr.rdma.remote_addr,
                 request_->wr.rdma.rkey);
}

Status WorkRequestBuilder::fill(const ReadTask& task) noexcept {
  if (!has_reads_) return ErrorCode::not_supported;
  if (task.length > kMaxMessage) return ErrorCode::invalid_value;
  request_->opcode = IBV_WR_RDMA_READ;
  std::uint64_t room = 0;
  const Status status =
      scatter(*registrar_, task.destination, task.length, sg_list(), request_->num_sge, room);
  if (!status.ok()) return status;
  if (room != task.length) return ErrorCode::invalid_value;
  return resolve(task.from, task.length, Access::remote_read, request_->wr.rdma.remote_addr,
                 request_->wr.rdma.rkey);
}

Status WorkRequestBuilder::fill_atomic(Buffer* destination, const RemoteAddress& at) noexcept {
  if (!has_atomics_) return ErrorCode::not_supported;
  std::uint64_t room = 0;
  const Status status =
      scatter(*registrar_, destination, kWord, sg_list(), request_->num_sge, room);
  if (!status.ok()) return status;
  if (room != kWord) return ErrorCode::invalid_value;
  return resolve_word(at, Access::remote_atomic, request_->wr.atomic.remote_addr,
                      request_->wr.atomic.rkey);
}

Status WorkRequestBuilder::fill(const CompareAndSwapTask& task) noexcept {
  request_->opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
  request_->wr.atomic.compare_add = task.compare;
  request_->wr.atomic.swap = task.swap;
  return fill_atomic(task.destination, task.at);
}

Status WorkRequestBuilder::fill(const FetchAndAddTask& task) noexcept {
  request_->opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
  request_->wr.atomic.compare_add = task.add;
  return fill_atomic(task.destination, task.at);
}

Status WorkRequestBuilder::fill(const RemoteSyncEventTask& task) noexcept {
  using Action = RemoteSyncEventTask::Action;
  if (task.action > Action::add) return ErrorCode::invalid_value;
  if (task.action == Action::get && !has_reads_) return ErrorCode::not_supported;
  if (task.action == Action::add && !has_atomics_) return ErrorCode::not_supported;
  std::uint64_t address = 0;
  std::uint32_t rkey = 0;
  if (const Status status = resolve_word(task.event, access_of(task.action), address, rkey);
      !status.ok()) {
    return status;
  }
  const ibv_sge scratch = scratch_of(task.scratch, *registrar_);
  if (scratch.length == 0) return ErrorCode::invalid_value;
  request_->sg_list[0] = scratch;
  request_->num_sge = 1;
  if (task.action == Action::add) {
    request_->opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
    request_->wr.atomic = {address, task.argument, 0, rkey};
    return {};
  }
  request_->opcode = task.action == Action::set ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
  request_->wr.rdma = {address, rkey};
  if (task.action == Action::set) {
    std::memcpy(task.scratch->dataroom().data(), &task.argument, kWord);
    if (kWord <= max_inline_data_) request_->send_flags |= IBV_SEND_INLINE;
  }
  return {};
}

void WorkRequestBuilder::finish(Operation& task, const ibv_wc* completion) noexcept {
  switch (task.kind_) {
    case Operation::Kind::receive:
      if (completion == nullptr) break;
      static_cast<void>(static_cast<ReceiveTask&>(task).take(*completion));
      break;
    case Operation::Kind::read: {
      const auto& read = static_cast<ReadTask&>(task);
      append(read.destination, read.length);
      break;
    }
    case Operation::Kind::compare_and_swap:
      append(static_cast<CompareAndSwapTask&>(task).destination, kWord);
      break;
    case Operation::Kind::fetch_and_add:
      append(static_cast<FetchAndAddTask&>(task).destination, kWord);
      break;
    case Operation::Kind::sync_event: {
      auto& event = static_cast<RemoteSyncEventTask&>(task);
      if (event.action == RemoteSyncEventTask::Action::set) break;
      std::memcpy(&event.result, event.scratch->dataroom().data(), sizeof event.result);
      break;
    }
    case Operation::Kind::send:
    case Operation::Kind::write: break;
  }
}

}  // namespace offload::rdma
