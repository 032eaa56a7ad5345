#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/channel_layout.hpp"
#include "progress/task.hpp"

namespace offload::channel {

class Requester;

/// A request on its way to the worker. It is in flight until its response has been received.
class SendTask final : public progress::Task {
 public:
  using ContextType = Requester;
};

/// A receive, posted for the next response. Completed, it holds that response and the slot that it
/// came in, until Requester::release() posts it again. Its user_data is that of the request.
class PostRecvTask final : public progress::Task {
 public:
  using ContextType = Requester;

  /// Which message of the channel was answered.
  [[nodiscard]] std::uint64_t sequence() const noexcept { return sequence_; }
  /// Anything but ok: no payload.
  [[nodiscard]] kernels::Status response_status() const noexcept { return response_status_; }
  [[nodiscard]] std::span<std::byte> payload() const noexcept { return payload_; }

 private:
  friend Requester;
  std::uint64_t sequence_ = 0;
  std::span<std::byte> payload_;
  kernels::Status response_status_ = kernels::Status::ok;
  bool holds_slot_ = false;
};

}  // namespace offload::channel
