#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "apps/client/requests/payload.hpp"
#include "apps/client/requests/recording.hpp"
#include "apps/client/requests/size_mix.hpp"
#include "apps/client/requests/verification.hpp"

namespace offload::client {

/// The requests of a run as frames ready to send, and the responses expected. Those of one size
/// are a class: their numbers are consecutive and their frames adjacent in memory, so that a batch
/// of them can be sent without a copy. Immutable once built: all threads read it.
class RequestPool {
 public:
  /// Every request is `text` and gets `response`.
  static RequestPool same(std::span<const std::byte> text, const Expected& response);

  /// A class for each size of `sizes`, in their order, of different requests if `payload` is
  /// random: kMostOfClass, or fewer if all would take more than 64 MiB, but at least 2. The same in
  /// each run, so that a failure can be repeated. Throws Error (no_memory) if that takes more than
  /// 1 GiB.
  static RequestPool of_sizes(const SizeMix& sizes, const Payload& payload, Answers answers);

  /// The requests of `recording`, in its order: request number i is that of number i modulo the
  /// recording's. They get the recorded responses, or those of `answers` unless these are recorded.
  static RequestPool recorded(const Recording& recording, Answers answers);

  [[nodiscard]] std::uint32_t size() const noexcept {
    return static_cast<std::uint32_t>(entries_.size());
  }
  [[nodiscard]] std::uint32_t class_count() const noexcept {
    return static_cast<std::uint32_t>(classes_.size());
  }
  /// The number of the first request of a class, and how many it has.
  [[nodiscard]] std::uint32_t first_of(std::uint32_t size_class) const noexcept {
    return classes_[size_class].first;
  }
  [[nodiscard]] std::uint32_t count_of(std::uint32_t size_class) const noexcept {
    return classes_[size_class].count;
  }
  /// The class of a share `draw` (0 to 1) of all requests, by the weights of the sizes.
  [[nodiscard]] std::uint32_t class_at(double draw) const noexcept;

  /// The frames of `count` requests of one class, from number `first` on.
  [[nodiscard]] std::span<const std::byte> frames(std::uint32_t first,
                                                  std::uint32_t count) const noexcept {
    return {entries_[first].frame, std::size_t{entries_[first].frame_size} * count};
  }
  /// Returns the condition for the payload of the response to request `number`.
  [[nodiscard]] const Expected& response(std::uint32_t number) const noexcept {
    return entries_[number].response;
  }
  /// Bytes of the payload of request `number`.
  [[nodiscard]] std::uint32_t request_length(std::uint32_t number) const noexcept;

  /// Return the limits of all classes, in bytes.
  [[nodiscard]] std::size_t shortest_frame() const noexcept { return shortest_frame_; }
  [[nodiscard]] std::size_t longest_frame() const noexcept { return longest_frame_; }
  [[nodiscard]] std::size_t longest_response() const noexcept { return longest_response_; }

 private:
  struct Class {
    std::uint32_t first = 0;
    std::uint32_t count = 0;
    double share_end = 1;  ///< of all requests, with the classes before it
  };
  struct Entry {
    const std::byte* frame;
    Expected response;
    std::uint32_t frame_size;
  };
  /// Allocations that stay where they are: one a class for frames, and as many as responses need.
  using Memory = std::vector<std::vector<std::byte>>;

  RequestPool() = default;
  void begin_class(std::uint32_t count, std::size_t frame_size, double share_end);
  void add(std::span<const std::byte> request, const Expected& response);
  void repeat(std::uint32_t number);
  void add_entry(std::span<const std::byte> frame, Expected response);
  Expected keep(const Expected& response);

  std::vector<Class> classes_;
  std::vector<Entry> entries_;
  Memory frames_;
  Memory responses_;
  std::size_t shortest_frame_ = SIZE_MAX;
  std::size_t longest_frame_ = 0;
  std::size_t longest_response_ = 0;
  std::size_t response_bytes_ = 0;  ///< of all responses
};

}  // namespace offload::client
