#include "rdma/connection/completion_loop.hpp"

#include <string>

#include "core/log.hpp"

namespace offload::rdma {

CompletionLoop::CompletionLoop(const DeviceContext& device, progress::Engine& engine,
                               std::uint32_t depth)
    : engine_(&engine), channel_(device), queue_(device, depth, &channel_), room_(queue_.depth()) {
  engine_->watch(channel_.fd(), EPOLLIN, *this);
}

CompletionLoop::~CompletionLoop() {
  if (const auto users = places_.size() - free_.size(); users != 0) {
    core::log_error("a completion queue ends while {} connections use it", users);
  }
  engine_->deactivate(*this);
  engine_->unwatch(channel_.fd(), *this);
}

std::uint32_t CompletionLoop::add(CompletionSink& sink, std::uint32_t depth) {
  if (failed_) {
    throw core::Error(core::ErrorCode::driver, "a completion queue that has failed");
  }
  if (depth > room_) {
    throw core::Error(core::ErrorCode::full,
                      "a completion queue has room for " + std::to_string(room_) + " of the " +
                          std::to_string(depth) + " completions that a connection may have");
  }
  if (free_.empty()) {
    if (places_.size() > kPlaceMask) {
      throw core::Error(core::ErrorCode::full, "a completion queue has no place for another user");
    }
    // So that remove() allocates nothing.
    if (free_.capacity() == places_.size()) free_.reserve(2 * places_.size() + 1);
    places_.push_back({nullptr, static_cast<std::uint32_t>(places_.size())});
    free_.push_back(places_.back().tag);
  }
  Place& place = places_[free_.back()];
  free_.pop_back();
  place.sink = &sink;
  room_ -= depth;
  return place.tag;
}

void CompletionLoop::remove(std::uint32_t tag, std::uint32_t depth,
                            std::size_t under_way) noexcept {
  Place& place = places_[tag & kPlaceMask];
  place.sink = nullptr;
  place.tag += 1U << kPlaceBits;
  free_.push_back(tag & kPlaceMask);
  room_ += depth;
  under_way_ -= under_way;
}

void CompletionLoop::began(std::size_t count) noexcept {
  under_way_ += count;
  engine_->activate(*this);
}

void CompletionLoop::drain() {
  // What is taken makes room for more: no more than the queue holds at once.
  for (std::size_t taken = 0; taken < queue_.depth() && poll(); taken += kAtOnce) {
  }
}

bool CompletionLoop::poll() {
  const auto done = queue_.poll(completions_);
  for (const ibv_wc& completion : done) {
    // A sink may go while it is told, and others with it.
    const auto tag = static_cast<std::uint32_t>(completion.wr_id >> 32);
    if ((tag & kPlaceMask) >= places_.size()) continue;
    const Place& place = places_[tag & kPlaceMask];
    if (place.tag != tag || place.sink == nullptr) continue;
    place.sink->on_completion(static_cast<std::uint32_t>(completion.wr_id), completion);
  }
  if (queue_.failed() && !failed_) {
    failed_ = true;
    for (const Place& place : places_) {
      if (place.sink != nullptr) place.sink->on_queue_failed();
    }
  }
  if (under_way_ == 0 || failed_) engine_->deactivate(*this);
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
