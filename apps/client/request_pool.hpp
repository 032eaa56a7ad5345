#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "apps/client/service.hpp"

namespace offload::client {

/// The requests of a run as frames ready to send, and the responses expected. Frames of consecutive
/// numbers are adjacent in memory, so that a batch can be sent without a copy. Immutable once
/// built: all threads read it.
class RequestPool {
 public:
  /// Every request is `text` and gets `response`.
  static RequestPool same(std::span<const std::byte> text, std::span<const std::byte> response);

  /// Different random requests of `size` bytes: kCount, or fewer if they and their responses would
  /// take more than 64 MiB, but at least 2. The same in each run, so that a failure can be
  /// repeated.
  static RequestPool random(std::size_t size, Service service);

  /// The number of requests. They are numbered from 0 to count() - 1.
  [[nodiscard]] std::uint32_t count() const noexcept { return count_; }

  /// The size of each request's frame, bytes.
  [[nodiscard]] std::size_t request_frame_size() const noexcept { return request_frame_size_; }

  /// The length of each response's payload, bytes.
  [[nodiscard]] std::size_t response_length() const noexcept { return response_length_; }

  /// The frames of `count` requests from number `first` on.
  [[nodiscard]] std::span<const std::byte> frames(std::uint32_t first,
                                                  std::uint32_t count) const noexcept {
    return std::span(frames_).subspan(first * request_frame_size_, count * request_frame_size_);
  }

  /// The expected payload of the response to request `number`.
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
