#include "rdma/verbs/completion_loop.hpp"

#include <string>

#include "core/log.hpp"

namespace offload::rdma {

CompletionLoop::CompletionLoop(const DeviceContext& device, progress::Engine& engine,
                               std::uint32_t depth)
    : engine_(&engine), channel_(device), queue_(device, depth, &channel_), room_(queue_.depth()) {
  engine_->watch(channel_.fd(), EPOLLIN, *this);
}

CompletionLoop::~CompletionLoop() {
  if (const auto users = slots_.size() - free_.size(); users != 0) {
    core::log_error("a completion queue is destroyed while {} connections use it", users);
  }
  engine_->deactivate(*this);
  engine_->unwatch(channel_.fd(), *this);
}

std::uint32_t CompletionLoop::add(CompletionHandler& handler, std::uint32_t depth) {
  if (failed_) {
    throw core::Error(core::ErrorCode::driver, "the completion queue has failed");
  }
  if (depth > room_) {
    throw core::Error(core::ErrorCode::full,
                      "a completion queue has room for " + std::to_string(room_) + " of the " +
                          std::to_string(depth) + " completions that a connection may have");
  }
  if (free_.empty()) {
    if (slots_.size() > kIndexMask) {
      throw core::Error(core::ErrorCode::full, "the completion queue has no room for another user");
    }
    // remove() must not allocate.
    if (free_.capacity() == slots_.size()) free_.reserve(2 * slots_.size() + 1);
    slots_.push_back({nullptr, static_cast<std::uint32_t>(slots_.size())});
    free_.push_back(slots_.back().tag);
  }
  Slot& slot = slots_[free_.back()];
  free_.pop_back();
  slot.handler = &handler;
  room_ -= depth;
  return slot.tag;
}

void CompletionLoop::remove(std::uint32_t tag, std::uint32_t depth,
                            std::size_t outstanding) noexcept {
  Slot& slot = slots_[tag & kIndexMask];
  slot.handler = nullptr;
  slot.tag += 1U << kIndexBits;
  free_.push_back(tag & kIndexMask);
  room_ += depth;
  outstanding_ -= outstanding;
}

void CompletionLoop::drain() {
  // The queue may refill meanwhile: bounded by its depth. Without outstanding work its owner may
  // take other completions by queue(), on another thread.
  for (std::size_t taken = 0; outstanding_ != 0 && taken < queue_.depth() && poll();
       taken += kBatch) {
  }
}

bool CompletionLoop::poll() {
  const auto done = queue_.poll(completions_);
  for (const ibv_wc& completion : done) {
    // A handler may remove itself and others while it is called.
    const auto tag = static_cast<std::uint32_t>(completion.wr_id >> 32);
    const std::size_t index = tag & kIndexMask;
    if (index >= slots_.size()) continue;
    const Slot& slot = slots_.data()[index];
    if (slot.tag != tag || slot.handler == nullptr) continue;
    slot.handler->on_completion(static_cast<std::uint32_t>(completion.wr_id), completion);
  }
  if (queue_.failed() && !failed_) {
    failed_ = true;
    for (const Slot& slot : slots_) {
      if (slot.handler != nullptr) slot.handler->on_queue_failed();
    }
  }
  if (outstanding_ == 0 || failed_) engine_->deactivate(*this);
  return !done.empty();
}

core::Duration CompletionLoop::arm() {
  if (!armed_) armed_ = queue_.arm().ok();
  return armed_ ? core::Duration::max() : core::Duration{};
}

void CompletionLoop::on_events(std::uint32_t) {
  if (channel_.take_events() != 0) armed_ = false;
}

}  // namespace offload::rdma
