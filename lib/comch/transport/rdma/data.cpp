#include "comch/transport/rdma/data.hpp"

#include <algorithm>
#include <string>

#include "core/error.hpp"
#include "core/log.hpp"

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

/// Links the requests from `first` to before `end` into one list; returns the last.
template <class Request, class Place>
Request& chain(std::vector<Request>& requests, std::uint64_t first, std::uint64_t end,
               Place place) {
  for (; first + 1 != end; ++first) requests[place(first)].next = &requests[place(first + 1)];
  Request& last = requests[place(first)];
  last.next = nullptr;
  return last;
}

/// Makes a pair with inline sends (IBV_SEND_INLINE) for short messages, which save the device a
/// read, if it supports them.
rdma::QueuePair make_pair(const Adapter& adapter, const rdma::CompletionQueue& completions,
                          std::uint32_t depth) {
  rdma::QueuePairOptions options;
  options.max_send_wr = options.max_recv_wr = depth;
  options.max_sge = 2;  // a header, and a content in its slot
  options.max_inline_data = protocol::kDataHeaderSize + kernels::kMaxPacketPayload;
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

}  // namespace

RdmaDataConnection::RdmaDataConnection(progress::Engine& engine, RdmaQueue queue,
                                       const kernels::ChannelView& channel, DataHandler& handler,
                                       std::uint32_t initial_credits)
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

RdmaDataConnection::~RdmaDataConnection() {
  engine_->deactivate(*this);
  engine_->unwatch(events_.fd(), *this);
}

bool RdmaDataConnection::poll() {
  if (failed()) return false;
  bool worked = handler().post_sends();
  if (!ring_doorbells()) return true;
  worked = poll_completions() || worked;
  if (deliver_arrived()) {
    handler().on_receives_done();
    worked = true;
  }
  return worked;
}

progress::Expecting RdmaDataConnection::expecting() const {
  if (failed()) return progress::Expecting::nothing;
  // A worker's peer may send at any time, a server's only answers.
  const bool comes = initial_credits() != 0 || received() != sends_prepared_;
  return comes ? progress::Expecting::from_device : progress::Expecting::nothing;
}

core::Duration RdmaDataConnection::arm() {
  if (failed()) return core::Duration::max();
  if (!armed_) armed_ = completions_.arm().ok();
  return armed_ ? core::Duration::max() : core::Duration{};
}

void RdmaDataConnection::on_events(std::uint32_t) {
  if (events_.take_events() != 0) armed_ = false;
}

// ---- Sending

void RdmaDataConnection::post_send(const DataHeader& header, const std::byte* content) noexcept {
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
    pieces[1] = {reinterpret_cast<std::uintptr_t>(content), header.length, 0};  // no key is needed
    request.num_sge = header.length != 0 ? 2 : 1;
  } else {
    std::copy_n(content, header.length, staged.content.data());
    pieces[0].length += header.length;
  }
}

/// Prepares a receive for the next message of the peer.
void RdmaDataConnection::prepare_receive() noexcept {
  const std::uint64_t number = receives_prepared_++;
  ibv_recv_wr& request = receives_[place(number)];
  auto& pieces = receive_pieces_[place(number)];
  request = {kReceive | number, nullptr, pieces.data(), static_cast<int>(pieces.size())};
  pieces[0] = staging_.piece(&incoming(number), kDataHeaderSize);
  pieces[1] = slot_piece(handler().receive_buffer(number), layout().max_content);
}

/// Posts the prepared requests: the receives in one list, then the sends. Returns false if the
/// connection has failed.
bool RdmaDataConnection::ring_doorbells() {
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

// ---- Completions

bool RdmaDataConnection::poll_completions() {
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
/// completions may arrive in either order, and until that of the send the device may still use the
/// slot.
bool RdmaDataConnection::deliver_arrived() {
  const std::uint64_t before = received();
  while (received() != arrived_ && peer_has_credit() && !failed()) {
    deliver_next(arrived_bytes_[place(received())]);
  }
  return received() != before;
}

/// Delivers the next message. `bytes`: the length that the completion of its receive reports.
void RdmaDataConnection::deliver_next(std::uint32_t bytes) {
  const DataHeader header = DataHeader::load(incoming(received()).header.data());
  if (bytes < kDataHeaderSize || bytes > kDataHeaderSize + layout().max_content ||
      header.length != bytes - kDataHeaderSize) {
    return fail("the peer sent " + std::to_string(bytes) + " bytes for a message that has " +
                std::to_string(header.length));
  }
  if (!check(header)) return;
  deliver(header, {handler().receive_buffer(received()), header.length});
}

// ---- The endpoint

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
