#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "apps/client/requests/payload.hpp"
#include "apps/client/requests/service.hpp"
#include "apps/client/requests/size_mix.hpp"

namespace offload::client {

/// The requests of a run as frames ready to send, and the responses expected. Those of one size
/// are a class: their numbers are consecutive and their frames adjacent in memory, so that a batch
/// of them can be sent without a copy. Immutable once built: all threads read it.
class RequestPool {
 public:
  /// Every request is `text` and gets `response`.
  static RequestPool same(std::span<const std::byte> text, std::span<const std::byte> response);

  /// A class for each size of `sizes`, in their order, of different requests if `payload` is
  /// random: kMostOfClass, or fewer if all would take more than 64 MiB, but at least 2. The same in
  /// each run, so that a failure can be repeated. Throws Error (no_memory) if that takes more than
  /// 1 GiB.
  static RequestPool of_sizes(const SizeMix& sizes, const Payload& payload, Service service);

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
  /// The expected payload of the response to request `number`.
  [[nodiscard]] std::span<const std::byte> response(std::uint32_t number) const noexcept {
    return {entries_[number].response, entries_[number].response_size};
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
    const std::byte* response;
    std::uint32_t frame_size;
    std::uint32_t response_size;
  };
  /// One allocation a class, which stays where it is.
  using Memory = std::vector<std::vector<std::byte>>;

  RequestPool() = default;
  void begin_class(std::uint32_t count, std::size_t frame_size, std::size_t response_size,
                   double share_end);
  void add(std::span<const std::byte> request, std::span<const std::byte> response);

  std::vector<Class> classes_;
  std::vector<Entry> entries_;
  Memory frames_;
  Memory responses_;
  std::size_t shortest_frame_ = SIZE_MAX;
  std::size_t longest_frame_ = 0;
  std::size_t longest_response_ = 0;
};

}  // namespace offload::client
