#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace offload::net {

/// The pieces of one connection's output in a batch: a chain in the thread's Gather.
struct GatherChain {
  static constexpr std::uint32_t kNone = ~0U;
  std::uint32_t first = kNone;
  std::uint32_t last = kNone;
  [[nodiscard]] bool empty() const noexcept { return first == kNone; }
};

/// The output of one batch of messages, to be gathered into one write a connection. Short frames
/// are built in an arena; neighbours of one connection grow together; long payloads are referred to
/// where they lie. Reset after each batch. Nothing allocates after construction. One thread.
class Gather {
 public:
  /// For `frames` frames, of each at most `frame_room` bytes in the arena.
  Gather(std::size_t frames, std::size_t frame_room)
      : frame_room_(frame_room),
        capacity_(frames * frame_room),
        arena_(std::make_unique_for_overwrite<std::byte[]>(capacity_)) {
    pieces_.reserve(2 * frames);
    vectors_.reserve(2 * frames);
  }

  [[nodiscard]] bool full() const noexcept { return capacity_ - used_ < frame_room_; }

  /// `frame_room` bytes to build a frame in; precondition: !full().
  [[nodiscard]] std::byte* room() noexcept { return arena_.get() + used_; }

  /// Appends the first `size` bytes of room() to `chain`.
  void commit(GatherChain& chain, std::size_t size) {
    append(chain, room(), size);
    used_ += size;
  }

  /// Appends bytes that lie elsewhere and stay there until the batch is written.
  void refer(GatherChain& chain, std::span<std::byte> bytes) {
    append(chain, bytes.data(), bytes.size());
  }

  /// `chain` as sendmsg takes it, valid until the next call.
  std::span<iovec> vectors(const GatherChain& chain) {
    vectors_.clear();
    for (std::uint32_t i = chain.first; i != GatherChain::kNone; i = pieces_[i].next) {
      vectors_.push_back(pieces_[i].bytes);
    }
    return vectors_;
  }

  /// Bytes in all pieces.
  static std::size_t size_of(std::span<const iovec> vectors) noexcept {
    std::size_t size = 0;
    for (const iovec& piece : vectors) size += piece.iov_len;
    return size;
  }

  void reset() noexcept {
    used_ = 0;
    pieces_.clear();
  }

 private:
  struct Piece {
    iovec bytes;
    std::uint32_t next;
  };

  void append(GatherChain& chain, std::byte* data, std::size_t size) {
    if (!chain.empty()) {
      iovec& last = pieces_[chain.last].bytes;
      if (static_cast<std::byte*>(last.iov_base) + last.iov_len == data) {
        last.iov_len += size;
        return;
      }
    }
    begin_piece(chain, data, size);
  }

  // Kept out of the common case above, which is then a few instructions of its caller.
  [[gnu::noinline]] void begin_piece(GatherChain& chain, std::byte* data, std::size_t size) {
    const auto index = static_cast<std::uint32_t>(pieces_.size());
    pieces_.push_back({{data, size}, GatherChain::kNone});
    (chain.empty() ? chain.first : pieces_[chain.last].next) = index;
    chain.last = index;
  }

  std::size_t frame_room_;
  std::size_t capacity_;
  std::unique_ptr<std::byte[]> arena_;
  std::size_t used_ = 0;
  std::vector<Piece> pieces_;
  std::vector<iovec> vectors_;
};

}  // namespace offload::net
