#include "comch/transport/rdma/data.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "core/log.hpp"
#include "memory/range.hpp"

namespace offload::comch {
namespace {

using protocol::DataHeader;
using protocol::kDataHeaderSize;

/// The number of completions in one turn, so that the engine also does its other work.
constexpr std::size_t kCompletionsAtOnce = 64;
/// The bit of a wr_id that marks a receive.
constexpr std::uint64_t kReceive = std::uint64_t{1} << 63;

memory::Range range_of(std::uint8_t* memory, std::uint64_t bytes) {
  return memory::borrow_range({reinterpret_cast<std::byte*>(memory), bytes});
}

/// Links the requests from `first` to before `end`, which no list has, into one; returns the last.
template <class Request, class Place>
Request& chain(std::vector<Request>& requests, std::uint64_t first, std::uint64_t end,
               Place place) {
  for (; first + 1 != end; ++first) requests[place(first)].next = &requests[place(first + 1)];
  return requests[place(first)];
}

/// Makes a pair with inline sends (IBV_SEND_INLINE) for short messages, which save the device a
/// read, if it supports them.
rdma::QueuePair make_pair(const Adapter& adapter, const rdma::CompletionQueue& completions,
                          std::uint32_t depth) {
  rdma::QueuePairOptions options;
  options.max_send_wr = options.max_recv_wr = depth;
  options.max_sge = 2;  // a header, and a content in its slot
  options.max_inline_data = kDataHeaderSize + kernels::kMaxPacketPayload;
  try {
    return {adapter.domain, completions, completions, options};
  } catch (const core::Error& error) {
    core::log_debug("no inline messages: {}", error.what());
    options.max_inline_data = 0;
    return {adapter.domain, completions, completions, options};
  }
}

RdmaQueue make_queue(std::shared_ptr<Adapter> adapter, const rdma::PathOptions& path,
                     std::uint32_t depth) {
  rdma::CompletionChannel events(adapter->device);
  rdma::CompletionQueue completions(adapter->device, 2 * depth, &events);
  rdma::QueuePair pair = make_pair(*adapter, completions, depth);
  // The peer can access no memory.
  pair.initialize(path.port_num, memory::Access{}, 0, path.pkey_index);
  return {std::move(adapter), std::move(events), std::move(completions), std::move(pair)};
}

/// A data connection over an RC queue pair, with a SEND for each content: a short one inline if the
/// device supports that, a long one from slot to slot without a copy. The slots are registered only
/// for work requests of this side.
///
/// A receive is posted before its message can arrive, so that the peer never gets an RNR NAK:
/// message k of this side is posted after the receive of the message for which k is the peer's
/// credit.
///
/// It uses QueuePair, CompletionQueue and RdmaRegistrar of lib/rdma, but not Connection and
/// CompletionLoop, for two reasons. Tasks cost more: a send alone, with its completion and a turn
/// of the engine, is some 980 instructions through a Connection; a message each way is some 1,030
/// here, with three turns (docs/evidence/benchmarks.md). And a CompletionLoop is bound to an engine
/// when it is made, while a queue pair needs its completion queue when the session's thread makes
/// it, before the I/O thread's engine has it.
class RdmaDataConnection final : public DataConnection, progress::Pollable, progress::EventHandler {
 public:
  /// `queue`: connected. Throws Error.
  RdmaDataConnection(progress::Engine& engine, RdmaQueue queue, const kernels::ChannelView& channel,
                     DataHandler& handler, std::uint32_t initial_credits)
      : DataConnection(handler, channel.layout, initial_credits),
        engine_(&engine),
        inline_size_(queue.pair.capacity().max_inline_data),
        adapter_(std::move(queue.adapter)),
        requests_(adapter_->registrar, range_of(channel.requests, channel.layout.request_bytes)),
        responses_(adapter_->registrar, range_of(channel.responses, channel.layout.response_bytes)),
        staging_(adapter_->registrar,
                 memory::allocate_range(2 * sizeof(Staged) * channel.layout.depth)),
        staged_(reinterpret_cast<Staged*>(staging_.range.address)),
        events_(std::move(queue.events)),
        completions_(std::move(queue.completions)),
        pair_(std::move(queue.pair)),
        sends_(channel.layout.depth),
        send_pieces_(channel.layout.depth),
        receives_(channel.layout.depth),
        receive_pieces_(channel.layout.depth),
        arrived_bytes_(channel.layout.depth) {
    for (std::uint32_t i = 0; i < initial_credits; ++i) prepare_receive();
    if (!ring_doorbells()) throw core::Error(core::ErrorCode::driver, *failure());
    engine_->watch(events_.fd(), EPOLLIN, *this);
    engine_->activate(*this);
  }
  ~RdmaDataConnection() override {
    engine_->deactivate(*this);
    engine_->unwatch(events_.fd(), *this);
  }

  void post_send(const DataHeader& header, const std::byte* content) noexcept override {
    prepare_receive();
    const std::uint64_t number = sends_prepared_++;
    Staged& staged = outgoing(number);
    header.store(staged.header.data());
    ibv_send_wr& request = sends_[place(number)];
    auto& pieces = send_pieces_[place(number)];
    request = {};
    request.wr_id = number;
    request.sg_list = pieces.data();
    request.num_sge = 1;
    request.opcode = IBV_WR_SEND;
    pieces[0] = staging_.piece(&staged, kDataHeaderSize);
    if (header.length > kernels::kMaxPacketPayload) {
      pieces[1] = slot_piece(content, header.length);
      request.num_sge = 2;
    } else if (kDataHeaderSize + header.length <= inline_size_) {
      request.send_flags = IBV_SEND_INLINE;
      // No key is needed.
      pieces[1] = {reinterpret_cast<std::uintptr_t>(content), header.length, 0};
      request.num_sge = header.length != 0 ? 2 : 1;
    } else {
      std::copy_n(content, header.length, staged.content.data());
      pieces[0].length += header.length;
    }
  }

 private:
  /// The part of a message that is not sent from or received into its slot: the header, and a
  /// content that is packets in the slot.
  struct Staged {
    std::array<std::byte, kDataHeaderSize> header;
    std::array<std::byte, kernels::kMaxPacketPayload> content;
  };

  /// Returns a piece of a slot: one side sends from requests and receives into responses, the other
  /// the reverse.
  [[nodiscard]] ibv_sge slot_piece(const std::byte* at, std::uint32_t length) const noexcept {
    return (requests_.contains(at) ? requests_ : responses_).piece(at, length);
  }

  bool poll() override {
    if (failed()) return false;
    bool worked = handler().post_sends();
    if (!ring_doorbells()) return true;
    worked = poll_completions() || worked;
    if (deliver_arrived()) {
      handler().on_receives_done();
      worked = true;
    }
    if (worked || !adapter_->has_failed.load(std::memory_order_relaxed)) return worked;
    fail(adapter_->device.name() + " has failed");
    return true;
  }
  [[nodiscard]] progress::Expecting expecting() const override {
    if (failed()) return progress::Expecting::nothing;
    // A worker's peer may send at any time, a server's only answers.
    const bool comes = initial_credits() != 0 || received() != sends_prepared_;
    return comes ? progress::Expecting::from_device : progress::Expecting::nothing;
  }
  core::Duration arm() override {
    if (failed()) return core::Duration::max();
    if (!armed_) armed_ = completions_.arm().ok();
    return armed_ ? core::Duration::max() : core::Duration{};
  }
  void disarm() override {}  // arming cannot be undone: the event will arrive, and be ignored
  void on_events(std::uint32_t) override {
    if (events_.take_events() != 0) armed_ = false;
  }

  /// Prepares a receive for the next message of the peer.
  void prepare_receive() noexcept {
    const std::uint64_t number = receives_prepared_++;
    ibv_recv_wr& request = receives_[place(number)];
    auto& pieces = receive_pieces_[place(number)];
    request = {kReceive | number, nullptr, pieces.data(), static_cast<int>(pieces.size())};
    pieces[0] = staging_.piece(&incoming(number), kDataHeaderSize);
    pieces[1] = slot_piece(handler().receive_buffer(number), layout().max_content);
  }
  /// Posts the prepared requests: the receives in one list, then the sends. Returns false if the
  /// connection has failed.
  bool ring_doorbells() {
    const auto at = [this](std::uint64_t number) { return place(number); };
    core::Status status;
    if (receives_posted_ != receives_prepared_) {
      chain(receives_, receives_posted_, receives_prepared_, at);
      ibv_recv_wr* bad = nullptr;
      status = pair_.post_receive(receives_[place(receives_posted_)], bad);
      receives_posted_ = receives_prepared_;
    }
    if (sends_posted_ != sends_prepared_ && status.ok()) {
      // Sends complete in order: the signaled completion of the last one stands for all.
      chain(sends_, sends_posted_, sends_prepared_, at).send_flags |= IBV_SEND_SIGNALED;
      ibv_send_wr* bad = nullptr;
      status = pair_.post_send(sends_[place(sends_posted_)], bad);
      sends_posted_ = sends_prepared_;
    }
    if (!status.ok()) fail("a message cannot be posted: " + std::string(describe(status.error())));
    return status.ok();
  }
  bool poll_completions() {
    std::array<ibv_wc, kCompletionsAtOnce> room;
    const auto done = completions_.poll(room);
    if (completions_.failed()) fail("the device has failed");
    for (const ibv_wc& completion : done) {
      if (completion.status != IBV_WC_SUCCESS) {
        fail("the connection broke: " + rdma::explain(completion.status, completion.vendor_err));
        break;
      }
      if ((completion.wr_id & kReceive) != 0) {
        arrived_bytes_[place(arrived_++)] = completion.byte_len;
      } else {
        complete_sends(completion.wr_id + 1 - sent());
      }
    }
    return !done.empty();
  }
  /// Delivers a message only after the completion of the send that was its credit: the two
  /// completions may arrive in either order, and until that of the send the device may still use
  /// the slot.
  bool deliver_arrived() {
    const std::uint64_t before = received();
    while (received() != arrived_ && peer_has_credit() && !failed()) {
      deliver_next(arrived_bytes_[place(received())]);
    }
    return received() != before;
  }
  /// Delivers the next message. `bytes`: the length that the completion of its receive reports.
  void deliver_next(std::uint32_t bytes) {
    const DataHeader header = DataHeader::load(incoming(received()).header.data());
    if (bytes < kDataHeaderSize || bytes > kDataHeaderSize + layout().max_content ||
        header.length != bytes - kDataHeaderSize) {
      return fail("the peer sent " + std::to_string(bytes) + " bytes for a message that has " +
                  std::to_string(header.length));
    }
    if (!check(header)) return;
    deliver(header, {handler().receive_buffer(received()), header.length});
  }

  [[nodiscard]] std::size_t place(std::uint64_t number) const noexcept {
    return number & (sends_.size() - 1);
  }
  /// Return the staging of message `number` of this side, or of the peer.
  [[nodiscard]] Staged& outgoing(std::uint64_t number) noexcept { return staged_[place(number)]; }
  [[nodiscard]] Staged& incoming(std::uint64_t number) noexcept {
    return staged_[sends_.size() + place(number)];
  }

  progress::Engine* engine_;
  std::uint32_t inline_size_;
  // In this order: the queue pair is destroyed before the memory that it may be writing to.
  std::shared_ptr<Adapter> adapter_;
  Registered requests_;
  Registered responses_;
  Registered staging_;
  Staged* staged_;
  rdma::CompletionChannel events_;
  rdma::CompletionQueue completions_;
  rdma::QueuePair pair_;

  // By place; a request and its pieces of memory.
  std::vector<ibv_send_wr> sends_;
  std::vector<std::array<ibv_sge, 2>> send_pieces_;
  std::vector<ibv_recv_wr> receives_;
  std::vector<std::array<ibv_sge, 2>> receive_pieces_;
  std::vector<std::uint32_t> arrived_bytes_;
  // Counted from the start: prepared >= posted >= sent(), and >= arrived >= received().
  std::uint64_t sends_prepared_ = 0;
  std::uint64_t sends_posted_ = 0;
  std::uint64_t receives_prepared_ = 0;
  std::uint64_t receives_posted_ = 0;
  std::uint64_t arrived_ = 0;  ///< their receives have completed
  bool armed_ = false;         ///< and no event has come since
};

}  // namespace

RdmaDataEndpoint::RdmaDataEndpoint(std::shared_ptr<Adapter> adapter, const rdma::PathOptions& path,
                                   std::uint32_t depth)
    : queue_(make_queue(std::move(adapter), path, depth)), pairing_(queue_.adapter->device, path) {}

std::unique_ptr<DataConnection> RdmaDataEndpoint::start(progress::Engine& engine,
                                                        const kernels::ChannelView& channel,
                                                        DataHandler& handler,
                                                        std::uint32_t initial_credits) {
  return std::make_unique<RdmaDataConnection>(engine, std::move(queue_), channel, handler,
                                              initial_credits);
}

}  // namespace offload::comch
