#include "comch/transport/rdma/slots.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <string>

#include "core/error.hpp"
#include "core/log.hpp"
#include "core/process/out_of_memory.hpp"
#include "protocol/bytes.hpp"

namespace offload::comch {
namespace {

using core::Error;
using core::ErrorCode;
using kernels::rdma::kMostSlotWrites;

/// What a back end waits at most for room in its queue, in ns: less than it is given to stop.
constexpr std::uint64_t kRoomTime = 1'000'000'000;
/// Work requests that the device has at a time; more wait in the rings.
constexpr std::uint32_t kMostWorkRequests = 1024;
/// Between two looks of a thread that sleeps, for a response or a completion.
constexpr core::Duration kLookInterval = std::chrono::microseconds(50);

std::span<std::byte> bytes_of(std::uint8_t* from, std::uint64_t length) {
  return {reinterpret_cast<std::byte*>(from), length};
}
std::span<std::byte> requests_of(const kernels::ChannelView& channel) {
  return bytes_of(channel.requests, channel.layout.request_bytes);
}
std::span<std::byte> responses_of(const kernels::ChannelView& channel) {
  return bytes_of(channel.responses, channel.layout.response_bytes);
}

/// A slot's writes for every slot, as far as a device takes them.
std::uint32_t sends_for(const kernels::ChannelView& channel) {
  return std::min(kMostSlotWrites * channel.layout.depth, kMostWorkRequests);
}

}  // namespace

// ---- What the peer knows

std::vector<std::byte> SlotEnd::encode() const {
  protocol::Writer writer;
  writer.bytes(connection.encode()).integer(region.address).integer(length).integer(region.key);
  return writer.take();
}

SlotEnd SlotEnd::decode(std::span<const std::byte> bytes) {
  protocol::Reader reader(bytes);
  const auto connection = reader.bytes();
  SlotEnd end{};
  end.region.address = reader.integer<std::uint64_t>();
  end.length = reader.integer<std::uint64_t>();
  end.region.key = reader.integer<std::uint32_t>();
  if (!reader.finished()) {
    throw Error(ErrorCode::bad_message,
                "the peer's end of a channel has no slots to write into: it has another data path");
  }
  end.connection = rdma::ConnectionDescriptor::decode(connection);
  return end;
}

// ---- The queue pair

SlotQueue::SlotQueue(const Adapter& adapter, const rdma::PathOptions& path, const MakePair& make,
                     std::span<std::byte> written_by_peer, std::span<std::byte> own)
    : domain_(adapter.device),
      registrar_(domain_),
      pairing_(adapter.device, path),
      written_{memory::borrow_range(written_by_peer), {}},
      own_{memory::borrow_range(own), {}},
      pair_(make(domain_)) {
  pair().initialize(path.port_num, memory::Access::remote_write);
  written_.key = registrar_.register_range(written_.range,
                                           memory::kLocalAccess | memory::Access::remote_write);
  try {
    own_.key = registrar_.register_range(own_.range, memory::kLocalAccess);
  } catch (...) {
    registrar_.deregister(written_.range, written_.key);
    throw;
  }
}

/// The queue pair goes first, as the peer may be writing.
SlotQueue::~SlotQueue() {
  pair_.reset();
  registrar_.deregister(own_.range, own_.key);
  registrar_.deregister(written_.range, written_.key);
}

std::vector<std::byte> SlotQueue::describe() const {
  return SlotEnd{pairing_.describe(pair()),
                 {reinterpret_cast<std::uint64_t>(written_.range.address), written_.key.remote},
                 written_.range.length}
      .encode();
}

void SlotQueue::connect(std::span<const std::byte> peer) {
  const SlotEnd end = SlotEnd::decode(peer);
  if (end.length != own_.range.length) {
    throw Error(ErrorCode::bad_message, "the peer's slots have " + std::to_string(end.length) +
                                            " bytes, these " + std::to_string(own_.range.length));
  }
  peer_ = end.region;
  pairing_.connect(pair(), end.connection);
}

// ---- The server's end

namespace {

/// The server posts to it by libibverbs.
class PlainPair final : public SlotPair {
 public:
  PlainPair(const rdma::ProtectionDomain& domain, const rdma::CompletionQueue& completions,
            std::uint32_t sends)
      : pair_(domain, completions, completions, slot_pair_options(sends)) {}
  [[nodiscard]] rdma::QueuePair& pair() noexcept override { return pair_; }

 private:
  rdma::QueuePair pair_;
};

}  // namespace

RdmaSlotConnection::RdmaSlotConnection(progress::Engine& engine, std::shared_ptr<Adapter> adapter,
                                       rdma::CompletionQueue completions,
                                       std::unique_ptr<SlotQueue> queue,
                                       const kernels::ChannelView& channel, DataHandler& handler)
    : DataConnection(handler, channel.layout, 0),
      engine_(&engine),
      channel_(channel),
      adapter_(std::move(adapter)),
      completions_(std::move(completions)),
      queue_(std::move(queue)),
      writes_(channel.layout.depth) {
  engine_->activate(*this);
}

RdmaSlotConnection::~RdmaSlotConnection() {
  engine_->deactivate(*this);
}

bool RdmaSlotConnection::poll() {
  if (failed()) return false;
  bool worked = handler().post_sends();
  worked = poll_completions() || worked;
  return post_writes() || worked;
}

progress::Expecting RdmaSlotConnection::expecting() const {
  return is_busy() ? progress::Expecting::from_device : progress::Expecting::nothing;
}

/// Responses come into memory, and nothing wakes the thread for them.
core::Duration RdmaSlotConnection::arm() {
  return is_busy() ? kLookInterval : core::Duration::max();
}

bool RdmaSlotConnection::is_busy() const {
  return !failed() && (completed_ != prepared_ || handler().awaits_content());
}

/// The slot itself is what is written, as its bytes are the worker's: both channels begin with
/// message 0. It stays as it is until its response has come, and with it these writes were done.
void RdmaSlotConnection::post_send(const protocol::DataHeader& header, const std::byte*) noexcept {
  Writes& writes = writes_of(header.sequence);
  const kernels::Slot slot = channel_.request(header.sequence);
  writes.header = kernels::load_packet(slot.packets);
  const kernels::rdma::SlotRest rest = kernels::rdma::rest_of(writes.header);
  const auto* const packets = reinterpret_cast<const std::uint8_t*>(slot.packets);
  const std::uint64_t to =
      queue_->peer().address + static_cast<std::uint64_t>(packets - channel_.requests);
  constexpr std::uint32_t kHalf = sizeof(kernels::Packet) / 2;
  writes.first = rest.length == 0 ? 1 : 0;
  writes.pieces[0] = {reinterpret_cast<std::uintptr_t>(packets + rest.offset), rest.length,
                      queue_->own().key};
  for (std::uint32_t i = 0; i < kMostSlotWrites; ++i) {
    const std::uint32_t half = i == 0 ? 0 : (i - 1) * kHalf;
    if (i != 0) {
      writes.pieces[i] = {reinterpret_cast<std::uintptr_t>(&writes.header) + half, kHalf, 0};
    }
    ibv_send_wr& request = writes.requests[i];
    request = {};
    request.wr_id = header.sequence;
    request.next = i + 1 != kMostSlotWrites ? &writes.requests[i + 1] : nullptr;
    request.sg_list = &writes.pieces[i];
    request.num_sge = 1;
    request.opcode = IBV_WR_RDMA_WRITE;
    request.send_flags = i != 0 ? IBV_SEND_INLINE : 0;
    request.wr.rdma.remote_addr = to + (i == 0 ? rest.offset : half);
    request.wr.rdma.rkey = queue_->peer().key;
  }
  ++prepared_;
}

/// What the queue pair has room for, as one list, of which the last is signaled.
bool RdmaSlotConnection::post_writes() {
  const std::uint64_t room = queue_->pair().capacity().max_send_wr / kMostSlotWrites;
  const std::uint64_t end = std::min(prepared_, completed_ + room);
  if (failed() || posted_ == end) return false;
  Writes& first = writes_of(posted_);
  for (; posted_ != end; ++posted_) {
    ibv_send_wr& last = writes_of(posted_).requests[kMostSlotWrites - 1];
    Writes& next = writes_of(posted_ + 1);
    last.next = posted_ + 1 != end ? &next.requests[next.first] : nullptr;
    if (posted_ + 1 == end) last.send_flags |= IBV_SEND_SIGNALED;
  }
  ibv_send_wr* bad = nullptr;
  const core::Status status = queue_->pair().post_send(first.requests[first.first], bad);
  if (!status.ok()) {
    fail("a request cannot be written: " + std::string(describe(status.error())));
  }
  return true;
}

bool RdmaSlotConnection::poll_completions() {
  std::array<ibv_wc, 16> room;
  const auto done = completions_.poll(room);
  if (completions_.failed()) fail("the device has failed");
  for (const ibv_wc& completion : done) {
    if (completion.status != IBV_WC_SUCCESS) {
      fail("the connection broke: " + rdma::explain(completion.status, completion.vendor_err));
      break;
    }
    completed_ = completion.wr_id + 1;
  }
  return !done.empty();
}

RdmaSlotEndpoint::RdmaSlotEndpoint(std::shared_ptr<Adapter> adapter, const rdma::PathOptions& path,
                                   const kernels::ChannelView& channel)
    : adapter_(std::move(adapter)),
      completions_(adapter_->device, sends_for(channel)),
      queue_(std::make_unique<SlotQueue>(
          *adapter_, path,
          [&](const rdma::ProtectionDomain& domain) {
            return std::make_unique<PlainPair>(domain, completions_, sends_for(channel));
          },
          responses_of(channel), requests_of(channel))) {}

std::unique_ptr<DataConnection> RdmaSlotEndpoint::start(progress::Engine& engine,
                                                        const kernels::ChannelView& channel,
                                                        DataHandler& handler, std::uint32_t) {
  return std::make_unique<RdmaSlotConnection>(engine, std::move(adapter_), std::move(completions_),
                                              std::move(queue_), channel, handler);
}

// ---- The worker's end

RdmaSlotPath::RdmaSlotPath(std::shared_ptr<Adapter> adapter, const rdma::PathOptions& path,
                           const kernels::ChannelView& channel, progress::Engine& engine)
    : adapter_(std::move(adapter)),
      queue_(
          *adapter_, path,
          [&](const rdma::ProtectionDomain& domain) {
            auto rings = make_slot_rings(
                {*adapter_, domain, engine, std::bit_ceil(kMostSlotWrites * channel.layout.depth),
                 sends_for(channel)},
                [this](const std::string& why) { fail(why); });
            rings_ = rings.get();
            return rings;
          },
          requests_of(channel), responses_of(channel)),
      marks_(rings_->sends().ring.blocks) {
  writer_.slots.queue = {rings_->sends(), &state_, marks_.data()};
  writer_.slots.own = queue_.own();
  writer_.slots.limit = {kRoomTime};
  writer_.queue = rings_->region();
  writer_.card_register = rings_->card_register();
  writer_.carrier = rings_->carrier();
}

RdmaSlotPath::~RdmaSlotPath() {
  stop();
}

void RdmaSlotPath::connect(std::span<const std::byte> peer) {
  queue_.connect(peer);
  writer_.slots.peer = queue_.peer();
}

void RdmaSlotPath::start() {
  rings_->start();
}

void RdmaSlotPath::stop() noexcept {
  try {
    rings_->stop();
  } catch (const std::exception& error) {  // the queue pair ends with this
    core::log_error("the slots' queue did not stop: {}", core::what_of(error));
  }
}

}  // namespace offload::comch
