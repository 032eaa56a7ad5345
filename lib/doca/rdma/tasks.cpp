#include <arpa/inet.h>

#include <span>
#include <tuple>

#include "doca/rdma/rdma.hpp"
#include "tasks/memory/remote_region.hpp"

using namespace offload::doca;  // NOLINT(google-build-using-namespace): the calls have no namespace
using offload::core::ErrorCode;
using offload::core::Status;
using offload::memory::Buffer;
using offload::rdma::RemoteAddress;

namespace {

/// Sets the place in a peer's memory of `at`, a part of a buffer. Returns false unless it is one
/// buffer of such memory.
bool set_place(RemoteAddress& place, const Buffer& buffer, std::span<const std::byte> at) noexcept {
  const offload::memory::Range& range = buffer.memory();
  if (range.location != offload::memory::Location::peer || buffer.next() != nullptr) return false;
  place.range = offload::memory::remote_range_of(buffer);
  place.offset = static_cast<std::uint64_t>(at.data() - range.address);
  place.granted = buffer.region().access() & offload::memory::kRemoteAccess;
  return true;
}

/// Gives a write its source, and a destination that has room for it.
template <class Task>
Status take_write(Task& task) noexcept {
  Buffer* const from = task.source_held.get();
  const Buffer& to = *task.destination_held.get();
  const auto room = to.tailroom();
  if (!set_place(task.own().to, to, room) || from->total_length() > room.size()) {
    return ErrorCode::invalid_value;
  }
  task.own().source = from;
  return {};
}

/// The data of a destination grows by the bytes that were written.
template <class Task>
void deliver_write(Task& task) noexcept {
  static_cast<void>(task.destination_held.get()->append(task.source_held.get()->total_length()));
}

/// Returns whether the device has the tasks of RDMA: each device has all kinds.
doca_error_t is_supported(const doca_devinfo* devinfo) noexcept {
  if (devinfo == nullptr) return DOCA_ERROR_INVALID_VALUE;
  const bool is_rdma = devinfo->device.kind == offload::device::Kind::rdma;
  return is_rdma ? DOCA_SUCCESS : DOCA_ERROR_NOT_SUPPORTED;
}

}  // namespace

Status doca_rdma_task_receive::take() noexcept {
  if (!hold(destination_held, destination, /*may_be_null=*/true)) return ErrorCode::invalid_value;
  own().destination = destination_held.get();
  from = nullptr;
  return {};
}

bool doca_rdma_task_receive::was_disconnected() const noexcept {
  if (task->status() != Status(ErrorCode::io_failed)) return false;  // it has no completion
  const doca_rdma_connection* const its = rdma().endpoint.find(own().qp_num());
  return its == nullptr || its->stops;
}

void doca_rdma_task_receive::deliver() noexcept {
  from = rdma().endpoint.find(own().qp_num());
}

Status doca_rdma_task_send::take() noexcept {
  if (!hold(source_held, source, /*may_be_null=*/true)) return ErrorCode::invalid_value;
  own().source = source_held.get();
  own().immediate.reset();
  return {};
}

Status doca_rdma_task_send_imm::take() noexcept {
  if (!hold(source_held, source, /*may_be_null=*/true)) return ErrorCode::invalid_value;
  own().source = source_held.get();
  own().immediate = ntohl(immediate);
  return {};
}

Status doca_rdma_task_write::take() noexcept {
  if (!hold(source_held, source) || !hold(destination_held, destination)) {
    return ErrorCode::invalid_value;
  }
  own().immediate.reset();
  return take_write(*this);
}

void doca_rdma_task_write::deliver() noexcept {
  deliver_write(*this);
}

Status doca_rdma_task_write_imm::take() noexcept {
  if (!hold(source_held, source) || !hold(destination_held, destination)) {
    return ErrorCode::invalid_value;
  }
  own().immediate = ntohl(immediate);
  return take_write(*this);
}

void doca_rdma_task_write_imm::deliver() noexcept {
  deliver_write(*this);
}

Status doca_rdma_task_read::take() noexcept {
  if (!hold(source_held, source) || !hold(destination_held, destination)) {
    return ErrorCode::invalid_value;
  }
  const Buffer& from = *source_held.get();
  if (!set_place(own().from, from, from.data())) return ErrorCode::invalid_value;
  own().length = from.data().size();
  own().destination = destination_held.get();
  return {};
}

doca_error_t doca_rdma_cap_task_receive_is_supported(const doca_devinfo* devinfo) {
  return is_supported(devinfo);
}

doca_error_t doca_rdma_task_receive_set_conf(
    doca_rdma* rdma, doca_rdma_task_receive_completion_cb_t successful_task_completion_cb,
    doca_rdma_task_receive_completion_cb_t error_task_completion_cb, uint32_t num_tasks) {
  return configure_tasks<doca_rdma_task_receive>(__func__, rdma, successful_task_completion_cb,
                                                 error_task_completion_cb, num_tasks);
}

doca_error_t doca_rdma_task_receive_allocate_init(doca_rdma* rdma, doca_buf* dst_buf,
                                                  doca_data user_data,
                                                  doca_rdma_task_receive** task) {
  if (any_null(rdma, task)) return DOCA_ERROR_INVALID_VALUE;
  auto& receives = std::get<TaskKind<doca_rdma_task_receive>>(rdma->kinds).tasks;
  if (rdma->state != DOCA_CTX_STATE_RUNNING || !receives.is_configured()) {
    return DOCA_ERROR_BAD_STATE;
  }
  auto* const allocated = receives.allocate_for(*rdma->endpoint.receives(), *rdma, user_data);
  if (allocated == nullptr) return DOCA_ERROR_NO_MEMORY;
  allocated->destination = dst_buf;
  allocated->from = nullptr;
  *task = allocated;
  return DOCA_SUCCESS;
}

doca_task* doca_rdma_task_receive_as_task(doca_rdma_task_receive* task) {
  return task;
}

doca_rdma_opcode doca_rdma_task_receive_get_result_opcode(const doca_rdma_task_receive* task) {
  if (task == nullptr || !task->own().immediate()) return DOCA_RDMA_OPCODE_RECV_SEND;
  return task->own().written_elsewhere() ? DOCA_RDMA_OPCODE_RECV_WRITE_WITH_IMM
                                         : DOCA_RDMA_OPCODE_RECV_SEND_WITH_IMM;
}

uint32_t doca_rdma_task_receive_get_result_len(const doca_rdma_task_receive* task) {
  return task != nullptr ? task->own().length() : 0;
}

doca_be32_t doca_rdma_task_receive_get_result_immediate_data(const doca_rdma_task_receive* task) {
  return task != nullptr ? htonl(task->own().immediate().value_or(0)) : 0;
}

const doca_rdma_connection* doca_rdma_task_receive_get_result_rdma_connection(
    const doca_rdma_task_receive* task) {
  return task != nullptr ? task->from : nullptr;
}

void doca_rdma_task_receive_set_dst_buf(doca_rdma_task_receive* task, doca_buf* dst_buf) {
  if (may_be_set(task, __func__)) task->destination = dst_buf;
}

doca_buf* doca_rdma_task_receive_get_dst_buf(const doca_rdma_task_receive* task) {
  return task != nullptr ? task->destination : nullptr;
}

doca_error_t doca_rdma_cap_task_send_is_supported(const doca_devinfo* devinfo) {
  return is_supported(devinfo);
}

doca_error_t doca_rdma_task_send_set_conf(
    doca_rdma* rdma, doca_rdma_task_send_completion_cb_t successful_task_completion_cb,
    doca_rdma_task_send_completion_cb_t error_task_completion_cb, uint32_t num_tasks) {
  return configure_tasks<doca_rdma_task_send>(__func__, rdma, successful_task_completion_cb,
                                              error_task_completion_cb, num_tasks);
}

doca_error_t doca_rdma_task_send_allocate_init(doca_rdma* rdma,
                                               doca_rdma_connection* rdma_connection,
                                               const doca_buf* src_buf, doca_data user_data,
                                               doca_rdma_task_send** task) {
  return allocate_task(rdma, rdma_connection, src_buf, nullptr, user_data, task);
}

doca_task* doca_rdma_task_send_as_task(doca_rdma_task_send* task) {
  return task;
}

void doca_rdma_task_send_set_src_buf(doca_rdma_task_send* task, const doca_buf* src_buf) {
  if (may_be_set(task, __func__)) task->source = src_buf;
}

const doca_buf* doca_rdma_task_send_get_src_buf(const doca_rdma_task_send* task) {
  return task != nullptr ? task->source : nullptr;
}

doca_error_t doca_rdma_cap_task_send_imm_is_supported(const doca_devinfo* devinfo) {
  return is_supported(devinfo);
}

doca_error_t doca_rdma_task_send_imm_set_conf(
    doca_rdma* rdma, doca_rdma_task_send_imm_completion_cb_t successful_task_completion_cb,
    doca_rdma_task_send_imm_completion_cb_t error_task_completion_cb, uint32_t num_tasks) {
  return configure_tasks<doca_rdma_task_send_imm>(__func__, rdma, successful_task_completion_cb,
                                                  error_task_completion_cb, num_tasks);
}

doca_error_t doca_rdma_task_send_imm_allocate_init(doca_rdma* rdma,
                                                   doca_rdma_connection* rdma_connection,
                                                   const doca_buf* src_buf,
                                                   doca_be32_t immediate_data, doca_data user_data,
                                                   doca_rdma_task_send_imm** task) {
  const doca_error_t result =
      allocate_task(rdma, rdma_connection, src_buf, nullptr, user_data, task);
  if (result == DOCA_SUCCESS) (*task)->immediate = immediate_data;
  return result;
}

doca_task* doca_rdma_task_send_imm_as_task(doca_rdma_task_send_imm* task) {
  return task;
}

void doca_rdma_task_send_imm_set_src_buf(doca_rdma_task_send_imm* task, const doca_buf* src_buf) {
  if (may_be_set(task, __func__)) task->source = src_buf;
}

const doca_buf* doca_rdma_task_send_imm_get_src_buf(const doca_rdma_task_send_imm* task) {
  return task != nullptr ? task->source : nullptr;
}

void doca_rdma_task_send_imm_set_immediate_data(doca_rdma_task_send_imm* task,
                                                doca_be32_t immediate_data) {
  if (may_be_set(task, __func__)) task->immediate = immediate_data;
}

doca_be32_t doca_rdma_task_send_imm_get_immediate_data(const doca_rdma_task_send_imm* task) {
  return task != nullptr ? task->immediate : 0;
}

doca_error_t doca_rdma_cap_task_read_is_supported(const doca_devinfo* devinfo) {
  return is_supported(devinfo);
}

doca_error_t doca_rdma_task_read_set_conf(
    doca_rdma* rdma, doca_rdma_task_read_completion_cb_t successful_task_completion_cb,
    doca_rdma_task_read_completion_cb_t error_task_completion_cb, uint32_t num_tasks) {
  return configure_tasks<doca_rdma_task_read>(__func__, rdma, successful_task_completion_cb,
                                              error_task_completion_cb, num_tasks);
}

doca_error_t doca_rdma_task_read_allocate_init(doca_rdma* rdma,
                                               doca_rdma_connection* rdma_connection,
                                               const doca_buf* src_buf, doca_buf* dst_buf,
                                               doca_data user_data, doca_rdma_task_read** task) {
  if (any_null(src_buf, dst_buf)) return DOCA_ERROR_INVALID_VALUE;
  return allocate_task(rdma, rdma_connection, src_buf, dst_buf, user_data, task);
}

doca_task* doca_rdma_task_read_as_task(doca_rdma_task_read* task) {
  return task;
}

void doca_rdma_task_read_set_src_buf(doca_rdma_task_read* task, const doca_buf* src_buf) {
  if (may_be_set(task, __func__)) task->source = src_buf;
}

const doca_buf* doca_rdma_task_read_get_src_buf(const doca_rdma_task_read* task) {
  return task != nullptr ? task->source : nullptr;
}

void doca_rdma_task_read_set_dst_buf(doca_rdma_task_read* task, doca_buf* dst_buf) {
  if (may_be_set(task, __func__)) task->destination = dst_buf;
}

doca_buf* doca_rdma_task_read_get_dst_buf(const doca_rdma_task_read* task) {
  return task != nullptr ? task->destination : nullptr;
}

doca_error_t doca_rdma_cap_task_write_is_supported(const doca_devinfo* devinfo) {
  return is_supported(devinfo);
}

doca_error_t doca_rdma_task_write_set_conf(
    doca_rdma* rdma, doca_rdma_task_write_completion_cb_t successful_task_completion_cb,
    doca_rdma_task_write_completion_cb_t error_task_completion_cb, uint32_t num_tasks) {
  return configure_tasks<doca_rdma_task_write>(__func__, rdma, successful_task_completion_cb,
                                               error_task_completion_cb, num_tasks);
}

doca_error_t doca_rdma_task_write_allocate_init(doca_rdma* rdma,
                                                doca_rdma_connection* rdma_connection,
                                                const doca_buf* src_buf, doca_buf* dst_buf,
                                                doca_data user_data, doca_rdma_task_write** task) {
  if (any_null(src_buf, dst_buf)) return DOCA_ERROR_INVALID_VALUE;
  return allocate_task(rdma, rdma_connection, src_buf, dst_buf, user_data, task);
}

doca_task* doca_rdma_task_write_as_task(doca_rdma_task_write* task) {
  return task;
}

void doca_rdma_task_write_set_src_buf(doca_rdma_task_write* task, const doca_buf* src_buf) {
  if (may_be_set(task, __func__)) task->source = src_buf;
}

const doca_buf* doca_rdma_task_write_get_src_buf(const doca_rdma_task_write* task) {
  return task != nullptr ? task->source : nullptr;
}

void doca_rdma_task_write_set_dst_buf(doca_rdma_task_write* task, doca_buf* dst_buf) {
  if (may_be_set(task, __func__)) task->destination = dst_buf;
}

doca_buf* doca_rdma_task_write_get_dst_buf(const doca_rdma_task_write* task) {
  return task != nullptr ? task->destination : nullptr;
}

doca_error_t doca_rdma_cap_task_write_imm_is_supported(const doca_devinfo* devinfo) {
  return is_supported(devinfo);
}

doca_error_t doca_rdma_task_write_imm_set_conf(
    doca_rdma* rdma, doca_rdma_task_write_imm_completion_cb_t successful_task_completion_cb,
    doca_rdma_task_write_imm_completion_cb_t error_task_completion_cb, uint32_t num_tasks) {
  return configure_tasks<doca_rdma_task_write_imm>(__func__, rdma, successful_task_completion_cb,
                                                   error_task_completion_cb, num_tasks);
}

doca_error_t doca_rdma_task_write_imm_allocate_init(doca_rdma* rdma,
                                                    doca_rdma_connection* rdma_connection,
                                                    const doca_buf* src_buf, doca_buf* dst_buf,
                                                    doca_be32_t immediate_data, doca_data user_data,
                                                    doca_rdma_task_write_imm** task) {
  if (any_null(src_buf, dst_buf)) return DOCA_ERROR_INVALID_VALUE;
  const doca_error_t result =
      allocate_task(rdma, rdma_connection, src_buf, dst_buf, user_data, task);
  if (result == DOCA_SUCCESS) (*task)->immediate = immediate_data;
  return result;
}

doca_task* doca_rdma_task_write_imm_as_task(doca_rdma_task_write_imm* task) {
  return task;
}

void doca_rdma_task_write_imm_set_src_buf(doca_rdma_task_write_imm* task, const doca_buf* src_buf) {
  if (may_be_set(task, __func__)) task->source = src_buf;
}

const doca_buf* doca_rdma_task_write_imm_get_src_buf(const doca_rdma_task_write_imm* task) {
  return task != nullptr ? task->source : nullptr;
}

void doca_rdma_task_write_imm_set_dst_buf(doca_rdma_task_write_imm* task, doca_buf* dst_buf) {
  if (may_be_set(task, __func__)) task->destination = dst_buf;
}

doca_buf* doca_rdma_task_write_imm_get_dst_buf(const doca_rdma_task_write_imm* task) {
  return task != nullptr ? task->destination : nullptr;
}

void doca_rdma_task_write_imm_set_immediate_data(doca_rdma_task_write_imm* task,
                                                 doca_be32_t immediate_data) {
  if (may_be_set(task, __func__)) task->immediate = immediate_data;
}

doca_be32_t doca_rdma_task_write_imm_get_immediate_data(const doca_rdma_task_write_imm* task) {
  return task != nullptr ? task->immediate : 0;
}
