#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace offload::net {

/// The pieces of one connection's output, linked in an OutputBatch: what one sendmsg(2) gathers.
struct IovecChain {
  static constexpr std::uint32_t kNone = ~0U;
  std::uint32_t first = kNone;
  std::uint32_t last = kNone;
  [[nodiscard]] bool empty() const noexcept { return first == kNone; }
};

/// The output of one batch of messages, to be sent with one sendmsg(2) for each connection. Short
/// frames are built in an arena, where adjacent ones of a connection become one iovec; long
/// payloads are sent from where they are. Nothing allocates after construction. One thread.
class OutputBatch {
 public:
  /// Has room for `frames` frames of at most `frame_room` bytes each.
  OutputBatch(std::size_t frames, std::size_t frame_room)
      : frame_room_(frame_room),
        capacity_(frames * frame_room),
        arena_(std::make_unique_for_overwrite<std::byte[]>(capacity_)),
        most_pieces_(static_cast<std::uint32_t>(2 * frames)),
        pieces_(std::make_unique_for_overwrite<Piece[]>(most_pieces_)) {
    vectors_.reserve(most_pieces_);
  }

  /// Returns whether there may be no room for another frame, or for another two pieces.
  [[nodiscard]] bool full() const noexcept {
    return capacity_ - used_ < frame_room_ || piece_count_ + 2 > most_pieces_;
  }

  /// `frame_room` bytes to build a frame in; precondition: !full().
  [[nodiscard]] std::byte* room() noexcept { return arena_.get() + used_; }

  /// Appends the first `size` bytes of room() to `chain`.
  void commit(IovecChain& chain, std::size_t size) {
    append(chain, room(), size);
    used_ += size;
  }

  /// Appends bytes outside the arena, which must stay valid until the batch is sent.
  void refer(IovecChain& chain, std::span<std::byte> bytes) {
    append(chain, bytes.data(), bytes.size());
  }

  /// The iovecs of `chain` for sendmsg, valid until the next call.
  std::span<iovec> vectors(const IovecChain& chain) {
    vectors_.clear();
    for (std::uint32_t i = chain.first; i != IovecChain::kNone; i = pieces_[i].next) {
      vectors_.push_back(pieces_[i].bytes);
    }
    return vectors_;
  }

  /// The sum of their lengths, bytes.
  static std::size_t size_of(std::span<const iovec> vectors) noexcept {
    std::size_t size = 0;
    for (const iovec& piece : vectors) size += piece.iov_len;
    return size;
  }

  /// Makes the batch empty, once it is sent.
  void reset() noexcept {
    used_ = 0;
    piece_count_ = 0;
  }

 private:
  struct Piece {
    iovec bytes;
    std::uint32_t next;
  };

  void append(IovecChain& chain, std::byte* data, std::size_t size) {
    if (!chain.empty()) {
      iovec& last = pieces_[chain.last].bytes;
      if (static_cast<std::byte*>(last.iov_base) + last.iov_len == data) {
        last.iov_len += size;
        return;
      }
    }
    begin_piece(chain, data, size);
  }

  // Not inlined, so that the common case above is a few instructions in its caller.
  [[gnu::noinline]] void begin_piece(IovecChain& chain, std::byte* data, std::size_t size) {
    const std::uint32_t index = piece_count_++;
    pieces_[index] = {{data, size}, IovecChain::kNone};
    (chain.empty() ? chain.first : pieces_[chain.last].next) = index;
    chain.last = index;
  }

  std::size_t frame_room_;
  std::size_t capacity_;
  std::unique_ptr<std::byte[]> arena_;
  std::size_t used_ = 0;
  std::uint32_t most_pieces_;
  std::uint32_t piece_count_ = 0;
  std::unique_ptr<Piece[]> pieces_;
  std::vector<iovec> vectors_;
};

}  // namespace offload::net
