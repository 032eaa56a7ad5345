#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "channel/channel_memory.hpp"
#include "rdma/queues/queue_memory.hpp"
#include "softcard/card/card.hpp"
#include "tests/channel/channel_fixture.hpp"
#include "tests/support/bytes.hpp"

namespace offload::backend::test {

/// A channel whose back end posts its responses itself. The model of a card, on a thread, carries
/// that out: the test is a server on another machine, of whose slots the back end has no address
/// but the card's. Requests are in the back end's slots at once.
class PostedChannel {
 public:
  enum class Peer : std::uint8_t { reached, of_unknown_key };

  PostedChannel(std::uint32_t depth, std::uint32_t max_length, Peer peer = Peer::reached)
      : here_(0, depth, max_length, -1),
        there_(0, depth, max_length, -1),
        there_at_card_(there_.descriptor(), channel::test::passed_fds(there_)),
        queue_(std::make_shared<memory::MemoryRegion>(
            memory::RegionOptions{"queue", memory::kLocalAccess | memory::Access::peer_pcie},
            std::vector{memory::allocate_range(2 * rdma::queue_memory_bytes(sizes(depth)))})),
        marks_(sizes(depth).send_blocks),
        flags_(depth, 1),
        server(server_end(here_.endpoint(), there_.endpoint())) {
    server.requester.set_wakeup(channel::Wakeup::polling);
    const std::span<std::byte> bytes(queue_->ranges().front().address,
                                     queue_->ranges().front().length);
    rdma::QueuePairMemory pairs[2];
    for (std::size_t i = 0; i < 2; ++i) {
      const std::size_t size = rdma::queue_memory_bytes(sizes(depth));
      pairs[i] = rdma::lay_out_queues(bytes.subspan(i * size, size), sizes(depth), 0);
      pairs[i].send.number = card_.add(pairs[i]);
    }
    card_.connect(pairs[0].send.number, pairs[1].send.number);
    card_.set_unordered(depth);
    receive_ = pairs[1].receive;
    for (std::uint32_t i = 0; i < depth; ++i) await_immediate();
    writer_.slots.queue = {pairs[0].send, &state_, marks_.data()};
    writer_.slots.own = region(here_.endpoint().view);
    writer_.slots.peer = region(there_at_card_.view());
    if (peer == Peer::of_unknown_key) writer_.slots.peer.key += 77;
    writer_.slots.limit = {1'000'000'000};
    writer_.queue = queue_;
    import_ = std::make_shared<channel::ImportedChannel>(
        here_.descriptor(), channel::test::passed_fds(here_), &writer_);
    thread_ = std::thread([this] {
      while (!stop_.load(std::memory_order_relaxed)) {
        const bool worked = card_.progress();
        if (!take_immediates() && !worked) std::this_thread::yield();
      }
    });
  }
  ~PostedChannel() { end(); }
  PostedChannel(const PostedChannel&) = delete;
  PostedChannel& operator=(const PostedChannel&) = delete;

  [[nodiscard]] const channel::SharedChannel& to_backend() const { return import_; }
  /// Returns why the card did not take the posted entries; empty if it did. Ends the card.
  [[nodiscard]] std::string fault() {
    end();
    return card_.fault();
  }

  /// Posts a message in a slot for it alone. Returns false if the channel is full.
  bool post(std::span<const std::byte> message) { return server.post(message); }
  /// Posts a short message in a slot with others, until flush(). Returns false if the channel is
  /// full.
  bool gather(std::span<const std::byte> message) {
    return server.requester.post(message, channel::test::Server::somebody()).ok();
  }
  void flush() { server.requester.flush(); }
  /// Writes a first request that claims to have `length` bytes, as no requester would.
  void forge_length(std::uint32_t length) {
    const kernels::ChannelView view = here_.endpoint().view;
    kernels::store_packet(view.request(0).packets, {{length, 0, 0}, view.layout.flag_of(0)});
  }
  /// Returns whether the response to that is there, with the status of a malformed request.
  [[nodiscard]] bool refused() {
    const kernels::ChannelView view = there_.endpoint().view;
    const kernels::Packet header = kernels::load_packet(view.response(0).packets);
    return header.flag == view.layout.flag_of(0) &&
           header.data[1] == static_cast<std::uint32_t>(kernels::ResponseStatus::bad_length);
  }
  /// Returns the next response, if it is there, and frees its slot.
  std::optional<support::Bytes> take() { return server.take(); }
  /// Waits for the next response and returns it; nothing if it does not come within a bound.
  std::optional<support::Bytes> await() { return server.await(); }

 private:
  void end() {
    stop_.store(true, std::memory_order_relaxed);
    if (thread_.joinable()) thread_.join();
  }
  static rdma::QueueSizes sizes(std::uint32_t depth) {
    return {kernels::rdma::kMostResponseWrites * depth, depth};
  }
  void await_immediate() {
    EXPECT_EQ(kernels::rdma::post_receive(receive_, receives_, {}), kernels::rdma::Posted::done);
    kernels::rdma::publish(receive_, receives_);
  }
  /// Does the work of the server's connection: it sets the flag of a response that is there.
  /// Returns whether there was one.
  bool take_immediates() {
    bool worked = false;
    kernels::rdma::Completion completion{};
    for (; kernels::rdma::poll_receive(receive_, receives_, completion); worked = true) {
      const std::uint32_t slot = kernels::rdma::big_endian(completion.immediate);
      std::uint32_t& flag = flags_.at(slot);
      kernels::rdma::set_flag(there_at_card_.view().response(slot), flag);
      flag += 2;
      await_immediate();
    }
    return worked;
  }
  /// Returns an endpoint with requests where the back end has them, responses where the card
  /// writes.
  static channel::ChannelEndpoint server_end(channel::ChannelEndpoint here,
                                             const channel::ChannelEndpoint& there) {
    here.view.responses = there.view.responses;
    return here;
  }
  kernels::rdma::SlotRegion region(const kernels::ChannelView& view) {
    const std::span bytes(reinterpret_cast<std::byte*>(view.responses), view.layout.response_bytes);
    return {reinterpret_cast<std::uint64_t>(view.responses),
            card_.register_memory(bytes, {true, true, true})};
  }

  channel::ChannelMemory here_;
  channel::ChannelMemory there_;
  /// The card writes at separate addresses: the requests order the server's read of a slot before
  /// the next write there, and the back end has these at other addresses than the server, so that
  /// ThreadSanitizer does not see that order.
  channel::ImportedChannel there_at_card_;
  std::shared_ptr<memory::MemoryRegion> queue_;
  kernels::rdma::SharedSendState state_{};
  std::vector<std::uint64_t> marks_;
  std::vector<std::uint32_t> flags_;  ///< of the next response in each slot
  rdma::model::Card card_;
  kernels::rdma::ReceiveQueue receive_{};
  kernels::rdma::ReceiveState receives_;
  channel::ResponseWriter writer_;
  channel::SharedChannel import_;
  std::atomic<bool> stop_{false};  ///< relaxed: join() orders all else
  std::thread thread_;

 public:
  channel::test::Server server;
};

}  // namespace offload::backend::test
