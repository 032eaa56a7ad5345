#pragma once

#include "kernels/group.hpp"
#include "kernels/packets/card_queue.hpp"
#include "tests/kernels/packets/wire.hpp"
#include "tests/kernels/rdma/model_card.hpp"

/// A card's queue with its memory; the model stands for the card.
namespace offload::kernels::packets::test {

/// A queue pair for raw packets with its frames.
template <class Place>
class CardEnd {
 public:
  CardEnd(rdma::test::ModelCard& card, std::uint32_t frames, std::uint32_t inline_bytes)
      : frames_(frames),
        queues_(rdma::test::ModelCard::bytes_for(2 * frames, frames)),
        scratch_(scratch_bytes(frames)),
        pair_(card.add_raw(queues_.data(), 2 * frames, frames, inline_bytes)) {
    std::uint8_t* at = scratch_.data();
    const auto take = [&at](auto* none, std::uint32_t count) {
      auto* const taken = reinterpret_cast<decltype(none)>(at);
      at += sizeof(*none) * count;
      return taken;
    };
    std::uint64_t* const word = nullptr;
    queue_.send.queue = pair_.send;
    queue_.send.state = take(static_cast<rdma::SharedSendState*>(nullptr), 1);
    queue_.receives = take(static_cast<CardReceives*>(nullptr), 1);
    queue_.send.marks = take(word, 2 * frames);
    queue_.sent = take(word, 2 * frames);
    queue_.posted = take(word, frames);
    queue_.receive = pair_.receive;
    queue_.fill = frames_.homes()[0];
    queue_.free_frames = frames_.homes()[1];
    queue_.frames = frames_.view();
    queue_.card_address = reinterpret_cast<std::uint64_t>(frames_.bytes());
    queue_.lkey = card.add_memory(frames_.bytes(), frames_.size());
    queue_.inline_bytes = inline_bytes;
  }

  [[nodiscard]] const CardQueue& queue() const { return queue_; }
  [[nodiscard]] const rdma::test::ModelPair& pair() const { return pair_; }
  /// Returns the number of unused frames, including those that are posted to receive into.
  [[nodiscard]] std::uint32_t frames_at_home() const {
    const std::uint32_t posted = rdma::big_endian(*pair_.receive.record);
    const std::uint32_t received = rdma::big_endian(*pair_.receive.completions.record);
    return frames_.at_home() + ((posted - received) & 0xffffU);
  }

 private:
  static std::size_t scratch_bytes(std::uint32_t frames) {
    return sizeof(rdma::SharedSendState) + sizeof(CardReceives) +
           std::size_t{5} * frames * sizeof(std::uint64_t);
  }

  TestFrames<Place> frames_;
  typename Place::Memory queues_;
  typename Place::Scratch scratch_;
  rdma::test::ModelPair pair_;
  CardQueue queue_{};
};

}  // namespace offload::kernels::packets::test
