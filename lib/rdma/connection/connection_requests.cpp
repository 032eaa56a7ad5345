#include <arpa/inet.h>

#include <cstring>

#include "rdma/connection/connection.hpp"
#include "rdma/connection/scatter.hpp"

/// The work requests of a connection's tasks.
namespace offload::rdma {
namespace {

using core::ErrorCode;
using core::Status;
using memory::Buffer;

/// What atomics and sync events are of, bytes.
constexpr std::uint64_t kWord = sizeof(std::uint64_t);

/// A place in the peer's memory, as a work request has it; invalid_value if so many bytes do not
/// fit.
Status name_remote(const RemotePlace& place, std::uint64_t length, std::uint64_t& address,
                   std::uint32_t& key) noexcept {
  const memory::RemoteRange& range = place.range;
  if (place.offset > range.length || length > range.length - place.offset) {
    return ErrorCode::invalid_value;
  }
  address = range.address + place.offset;
  key = range.key;
  return {};
}

/// The same for one word, which has to be aligned.
Status name_word(const RemotePlace& place, std::uint64_t& address, std::uint32_t& key) noexcept {
  const Status status = name_remote(place, kWord, address, key);
  return status.ok() && address % kWord != 0 ? ErrorCode::invalid_value : status;
}

ibv_sge piece(const std::byte* address, std::uint64_t length, const memory::Key* key) noexcept {
  return {reinterpret_cast<std::uint64_t>(address), static_cast<std::uint32_t>(length),
          key == nullptr ? 0 : key->local};
}

/// The word that a sync event's task has for the device; of no bytes if there is none.
ibv_sge scratch_of(const Buffer* scratch, const Registrar& registrar) noexcept {
  if (scratch == nullptr || scratch->dataroom().size() < kWord) return {};
  const memory::MemoryRegion& region = scratch->region();
  const memory::Key* const key = region.key(registrar, scratch->range());
  if (key == nullptr || !includes(region.access(), memory::Access::local_write) ||
      region.ranges()[scratch->range()].location == memory::Location::device) {
    return {};
  }
  return piece(scratch->dataroom().data(), kWord, key);
}

void set_immediate(const std::optional<std::uint32_t>& immediate, ibv_wr_opcode without,
                   ibv_wr_opcode with, ibv_send_wr& request) noexcept {
  request.opcode = immediate ? with : without;
  if (immediate) request.imm_data = htonl(*immediate);
}

}  // namespace

/// What is short enough travels in the request itself, and then needs no registration.
Status Connection::gather(const Buffer* source, ibv_send_wr& request,
                          std::uint64_t& length) noexcept {
  const auto pieces = sends_.pieces();
  bool in_host = true;
  bool registered = true;
  length = 0;
  for (; source != nullptr; source = source->next()) {
    const auto data = source->data();
    if (data.empty()) continue;
    if (static_cast<std::size_t>(request.num_sge) == pieces.size()) return ErrorCode::invalid_value;
    const memory::Key* const key = source->region().key(endpoint_.registrar, source->range());
    const auto& range = source->region().ranges()[source->range()];
    in_host = in_host && range.location != memory::Location::device;
    registered = registered && key != nullptr;
    length += data.size();
    if (data.size() > kMostBytes || length > kMostBytes) return ErrorCode::invalid_value;
    pieces[static_cast<std::size_t>(request.num_sge++)] = piece(data.data(), data.size(), key);
  }
  const bool inlined = in_host && length <= options_.queues.inline_size;
  if (inlined && length != 0) request.send_flags |= IBV_SEND_INLINE;
  return inlined || registered ? Status() : ErrorCode::invalid_value;
}

Status Connection::fill(const SendTask& task, ibv_send_wr& request) noexcept {
  set_immediate(task.immediate, IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, request);
  if (task.solicited) request.send_flags |= IBV_SEND_SOLICITED;
  std::uint64_t length = 0;
  return gather(task.source, request, length);
}

Status Connection::fill(const WriteTask& task, ibv_send_wr& request) noexcept {
  set_immediate(task.immediate, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, request);
  std::uint64_t length = 0;
  if (const Status status = gather(task.source, request, length); !status.ok()) return status;
  return name_remote(task.to, length, request.wr.rdma.remote_addr, request.wr.rdma.rkey);
}

Status Connection::fill(const ReadTask& task, ibv_send_wr& request) noexcept {
  if (!has_reads()) return ErrorCode::not_supported;
  if (task.length > kMostBytes) return ErrorCode::invalid_value;
  request.opcode = IBV_WR_RDMA_READ;
  std::uint64_t room = 0;
  const Status status = scatter(endpoint_.registrar, task.destination, task.length, sends_.pieces(),
                                request.num_sge, room);
  if (!status.ok()) return status;
  if (room != task.length) return ErrorCode::invalid_value;
  return name_remote(task.from, task.length, request.wr.rdma.remote_addr, request.wr.rdma.rkey);
}

Status Connection::fill_atomic(Buffer* destination, const RemotePlace& at,
                               ibv_send_wr& request) noexcept {
  if (!has_atomics()) return ErrorCode::not_supported;
  std::uint64_t room = 0;
  const Status status =
      scatter(endpoint_.registrar, destination, kWord, sends_.pieces(), request.num_sge, room);
  if (!status.ok()) return status;
  if (room != kWord) return ErrorCode::invalid_value;
  return name_word(at, request.wr.atomic.remote_addr, request.wr.atomic.rkey);
}

Status Connection::fill(const CompareAndSwapTask& task, ibv_send_wr& request) noexcept {
  request.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
  request.wr.atomic.compare_add = task.compare;
  request.wr.atomic.swap = task.swap;
  return fill_atomic(task.destination, task.at, request);
}

Status Connection::fill(const FetchAndAddTask& task, ibv_send_wr& request) noexcept {
  request.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
  request.wr.atomic.compare_add = task.add;
  return fill_atomic(task.destination, task.at, request);
}

Status Connection::fill(const RemoteSyncEventTask& task, ibv_send_wr& request) noexcept {
  using Action = RemoteSyncEventTask::Action;
  if (task.action > Action::add) return ErrorCode::invalid_value;
  if (task.action == Action::get && !has_reads()) return ErrorCode::not_supported;
  if (task.action == Action::add && !has_atomics()) return ErrorCode::not_supported;
  std::uint64_t address = 0;
  std::uint32_t key = 0;
  if (const Status named = name_word(task.event, address, key); !named.ok()) return named;
  const ibv_sge scratch = scratch_of(task.scratch, endpoint_.registrar);
  if (scratch.length == 0) return ErrorCode::invalid_value;
  sends_.pieces()[0] = scratch;
  request.num_sge = 1;
  if (task.action == Action::add) {
    request.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
    request.wr.atomic = {address, task.argument, 0, key};
    return {};
  }
  request.opcode = task.action == Action::set ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
  request.wr.rdma = {address, key};
  if (task.action == Action::set) {
    std::memcpy(task.scratch->dataroom().data(), &task.argument, kWord);
    if (kWord <= options_.queues.inline_size) request.send_flags |= IBV_SEND_INLINE;
  }
  return {};
}

}  // namespace offload::rdma
