#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "apps/client/service.hpp"

namespace offload::client {

/// The requests of a run, framed and ready to send, and the responses that they must get. Frames of
/// consecutive numbers stand side by side, so that a batch of them is one piece of memory: sending
/// copies nothing. Built once, then read by all threads.
class RequestPool {
 public:
  /// Every request is `text` and gets `response`.
  static RequestPool same(std::span<const std::byte> text, std::span<const std::byte> response);

  /// Different random requests of `size` bytes: kCount of them, fewer if they are long (64 MiB of
  /// memory with their responses, but at least 2). The same ones every time, so that a failure can
  /// be repeated.
  static RequestPool random(std::size_t size, Service service);

  /// How many requests there are. They have the numbers 0 to count() - 1.
  [[nodiscard]] std::uint32_t count() const noexcept { return count_; }

  /// Bytes of one request's frame on the wire.
  [[nodiscard]] std::size_t request_frame_size() const noexcept { return request_frame_size_; }

  /// Bytes of one response's payload.
  [[nodiscard]] std::size_t response_length() const noexcept { return response_length_; }

  /// The frames of `count` requests from number `first` on.
  [[nodiscard]] std::span<const std::byte> frames(std::uint32_t first,
                                                  std::uint32_t count) const noexcept {
    return std::span(frames_).subspan(first * request_frame_size_, count * request_frame_size_);
  }

  /// The payload that the response to request `number` must have.
  [[nodiscard]] std::span<const std::byte> response(std::uint32_t number) const noexcept {
    return std::span(responses_).subspan(number * response_length_, response_length_);
  }

 private:
  RequestPool(std::size_t request_length, std::size_t response_length);

  void add(std::span<const std::byte> request, std::span<const std::byte> response);

  std::size_t request_frame_size_;
  std::size_t response_length_;
  std::uint32_t capacity_;
  std::uint32_t count_ = 0;
  std::vector<std::byte> frames_;
  std::vector<std::byte> responses_;
};

}  // namespace offload::client
