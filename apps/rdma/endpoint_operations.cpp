#include "apps/rdma/endpoint.hpp"

/// Operations of an Endpoint.
namespace offload::rdma_tool {

template <class Task>
Task& Endpoint::next(progress::TaskPool<Task>& pool) noexcept {
  // Operations complete in order, and room() has waited for the last one of this slot.
  return pool.tasks()[submitted_ % options_.in_flight];
}

memory::Buffer* Endpoint::slot_buffer(std::size_t length) noexcept {
  memory::Buffer* const buffer = outgoing_[submitted_ % options_.in_flight].get();
  static_cast<void>(buffer->set_data(0, length));
  return buffer;
}

std::span<std::byte> Endpoint::room() {
  if (submitted_ >= options_.in_flight) wait_completed(submitted_ + 1 - options_.in_flight);
  return outgoing(submitted_);
}

void Endpoint::wait_completed(std::uint64_t count) {
  if (completed_ >= count) return;
  flush();
  environment_.wait([&] { return completed_ >= count; }, "the completion of an operation");
}

void Endpoint::submit(rdma::RdmaTask& task) {
  ++submitted_;
  ++unflushed_;
  require(connection_.submit_unflushed(task), "take an operation");
  if (unflushed_ >= options_.batch) flush();
}

void Endpoint::flush() noexcept {
  if (unflushed_ == 0) return;
  unflushed_ = 0;
  static_cast<void>(connection_.flush());  // errors end the tasks
}

void Endpoint::send(std::size_t length, std::optional<std::uint32_t> immediate) {
  wait_credit();
  auto& task = next(sends_);
  task.source = slot_buffer(length);
  task.immediate = immediate;
  submit(task);
}

void Endpoint::write(std::size_t remote_slot, std::size_t length,
                     std::optional<std::uint32_t> immediate) {
  if (immediate) wait_credit();
  auto& task = next(writes_);
  task.source = slot_buffer(length);
  task.to = remote(remote_slot);
  task.immediate = immediate;
  submit(task);
}

rdma::ReadTask& Endpoint::prepared_read(std::size_t remote_slot, std::size_t length) noexcept {
  auto& task = next(reads_);
  task.destination = slot_buffer(0);
  task.from = remote(remote_slot);
  task.length = length;
  return task;
}

void Endpoint::read(std::size_t remote_slot, std::size_t length) {
  submit(prepared_read(remote_slot, length));
}

void Endpoint::fetch_and_add(std::size_t remote_slot, std::uint64_t add) {
  auto& task = next(adds_);
  task.destination = slot_buffer(0);
  task.at = remote(remote_slot);
  task.add = add;
  submit(task);
}

void Endpoint::compare_and_swap(std::size_t remote_slot, std::uint64_t compare,
                                std::uint64_t swap) {
  auto& task = next(swaps_);
  task.destination = slot_buffer(0);
  task.at = remote(remote_slot);
  task.compare = compare;
  task.swap = swap;
  submit(task);
}

std::uint64_t Endpoint::work_on_event(rdma::RemoteSyncEventTask::Action action,
                                      std::uint64_t argument) {
  auto& task = next(events_);
  task.action = action;
  task.event = {peer_event_, 0};
  task.argument = argument;
  task.scratch = slot_buffer(0);
  submit(task);
  wait_completed(submitted_);
  return task.result;
}

rdma::SendTask& Endpoint::prepared_send(const memory::Buffer& source) noexcept {
  auto& task = sends_.tasks()[0];
  task.source = &source;
  return task;
}

}  // namespace offload::rdma_tool
