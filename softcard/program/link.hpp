#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/fd.hpp"
#include "softcard/module/softcard.h"

namespace offload::softcard {

/// Pages of an owner, or of the module, that this process sees. Unmapped at its end.
class Mapping {
 public:
  Mapping() = default;
  Mapping(int device, std::uint64_t offset, std::size_t length, bool writable);
  Mapping(const Mapping&) = delete;
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  [[nodiscard]] std::byte* data() const noexcept { return data_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t length_ = 0;
};

/// An area of an owner's memory that is mapped.
struct Area {
  Mapping mapping;
  std::span<std::byte> bytes;
};

/// The connection to the kernel module. One thread.
class Link {
 public:
  /// `flags`: of softcard_flags. Throws Error.
  explicit Link(std::uint32_t flags);

  /// Returns whether the module has a request that was not read.
  [[nodiscard]] bool has_request() const noexcept;
  /// Reads the next request, if there is one.
  std::optional<softcard_request> read();
  /// `error`: 0 or a negative errno.
  void answer(const softcard_request& request, int error);
  void tell(softcard_message_kind kind, std::uint32_t number, std::int32_t value = 0);

  /// Hands over a message that has come from another card.
  void deliver(const softcard_mad& message);

  /// Throws Error.
  [[nodiscard]] Area map(const softcard_area& area, bool writable = true) const;

 private:
  void write(const softcard_message& message);

  core::Fd fd_;
  Mapping page_;
  std::uint32_t seen_ = 0;
};

}  // namespace offload::softcard
