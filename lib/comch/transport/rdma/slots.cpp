#include "comch/transport/rdma/slots.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "core/log.hpp"
#include "core/process/out_of_memory.hpp"
#include "protocol/bytes.hpp"

namespace offload::comch {
namespace {

using core::Error;
using core::ErrorCode;
using kernels::rdma::kMostResponseWrites;
using memory::Access;

/// The longest wait of a back end for room in its queue, in ns: shorter than its time to stop.
constexpr std::uint64_t kRoomTime = 1'000'000'000;
/// The maximum number of work requests in the device; others wait in the rings.
constexpr std::uint32_t kMostWorkRequests = 1024;
/// The number of completions taken in one turn.
constexpr std::size_t kMostCompletions = 32;
/// The interval of polls of a sleeping thread for a response or a completion.
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

/// Returns the number of sends: `writes` for every slot, up to the limit of a device.
std::uint32_t sends_for(const kernels::ChannelView& channel, std::uint32_t writes) {
  return std::min(writes * channel.layout.depth, kMostWorkRequests);
}

/// Posts `count` receives, each for immediate data. Returns the status of the queue pair.
core::Status post_receives(rdma::QueuePair& pair, std::size_t count) noexcept {
  std::array<ibv_recv_wr, kMostCompletions> receives{};
  while (count != 0) {
    const std::size_t some = std::min(count, receives.size());
    for (std::size_t i = 0; i < some; ++i) {
      receives[i].next = i + 1 == some ? nullptr : &receives[i + 1];
    }
    ibv_recv_wr* bad = nullptr;
    if (const core::Status status = pair.post_receive(receives[0], bad); !status.ok()) {
      return status;
    }
    count -= some;
  }
  return {};
}

}  // namespace

// ---- What the peer knows

std::vector<std::byte> SlotDescription::encode() const {
  protocol::Writer writer;
  writer.bytes(connection.encode()).integer(region.address).integer(length).integer(region.key);
  return writer.take();
}

SlotDescription SlotDescription::decode(std::span<const std::byte> bytes) {
  protocol::Reader reader(bytes);
  const auto connection = reader.bytes();
  SlotDescription end{};
  end.region.address = reader.integer<std::uint64_t>();
  end.length = reader.integer<std::uint64_t>();
  end.region.key = reader.integer<std::uint32_t>();
  if (!reader.finished()) {
    throw Error(ErrorCode::bad_message,
                "the peer's end of a channel has no slots to write into, as its data path differs");
  }
  end.connection = rdma::ConnectionDescriptor::decode(connection);
  return end;
}

// ---- The queue pair

const rdma::DeviceContext& with_atomics(const rdma::DeviceContext& device) {
  if (device.has_atomics()) return device;
  throw Error(
      ErrorCode::not_supported,
      device.name() + " has no atomic operations, which --data-path gpu needs and cpu does not");
}

SlotEndpoint::SlotEndpoint(const Adapter& adapter, const rdma::PathOptions& path,
                           const MakePair& make, const Written& written, std::span<std::byte> own)
    : domain_(with_atomics(adapter.device)),
      registrar_(domain_),
      pairing_(adapter.device, path),
      written_(registrar_, memory::borrow_range(written.bytes), written.by_peer),
      own_(registrar_, memory::borrow_range(own)),
      pair_(make(domain_)) {
  pair().initialize(path.port_num, written.by_peer, 0, path.pkey_index);
}

std::vector<std::byte> SlotEndpoint::describe() const {
  return SlotDescription{
      pairing_.describe(pair()), {written_.address(), written_.key.remote}, written_.range.length}
      .encode();
}

void SlotEndpoint::connect(std::span<const std::byte> peer) {
  const SlotDescription end = SlotDescription::decode(peer);
  if (end.length != own_.range.length) {
    throw Error(ErrorCode::bad_message, "the peer's slots have " + std::to_string(end.length) +
                                            " bytes, these " + std::to_string(own_.range.length));
  }
  peer_ = end.region;
  pairing_.connect(pair(), end.connection);
}

// ---- The server's end

namespace {

/// Loads an operand of atomic operations.
std::uint64_t load_word(const void* from) {
  std::uint64_t word = 0;
  std::memcpy(&word, from, sizeof word);
  return word;
}
/// Returns the half of a header with the flag.
std::uint64_t flag_half(const kernels::Packet& header) {
  return load_word(reinterpret_cast<const std::byte*>(&header) + sizeof(std::uint64_t));
}

/// The pair of the server, which posts with libibverbs.
class PlainPair final : public SlotPair {
 public:
  PlainPair(const rdma::ProtectionDomain& domain, const rdma::CompletionQueue& completions,
            std::uint32_t sends, std::uint32_t receives)
      : pair_(domain, completions, completions, slot_pair_options(sends, receives)) {}
  [[nodiscard]] rdma::QueuePair& pair() noexcept override { return pair_; }

 private:
  rdma::QueuePair pair_;
};

/// The server's end: writes requests into the worker's slots, and makes the responses in its own
/// slots valid when their completions arrive.
class RdmaSlotConnection final : public DataConnection, progress::Pollable {
 public:
  /// `queue`: connected, and using `completions`. Throws Error.
  RdmaSlotConnection(progress::Engine& engine, std::shared_ptr<Adapter> adapter,
                     rdma::CompletionQueue completions, std::unique_ptr<SlotEndpoint> queue,
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
  ~RdmaSlotConnection() override { engine_->deactivate(*this); }

  [[nodiscard]] bool carries_slots() const noexcept override { return true; }
  /// Writes the slot itself, whose bytes are those of the worker's slot: both channels begin with
  /// message 0. It does not change until its response has arrived, which implies that these writes
  /// are done.
  ///
  /// The half with the flag is swapped with that of the slot's last request, which only this side
  /// writes; it is 0 at first, because each attachment of a worker has new memory. The replaced
  /// value is written to the slot's last bytes, which no content uses (kernels::kSlack).
  void post_send(const protocol::DataHeader& header, const std::byte*) noexcept override {
    constexpr std::uint32_t kHalf = sizeof(kernels::Packet) / 2;
    Writes& writes = writes_of(header.sequence);
    const kernels::Slot slot = channel_.request(header.sequence);
    const std::uint64_t before = flag_half(writes.header);
    writes.header = kernels::load_packet(slot.packets);
    const kernels::rdma::SlotRest rest = kernels::rdma::rest_of(writes.header);
    const auto* const packets = reinterpret_cast<const std::uint8_t*>(slot.packets);
    const kernels::rdma::SlotRegion peer = queue_->peer();
    const std::uint32_t own_key = queue_->own().key;
    const std::uint64_t to = peer.address + static_cast<std::uint64_t>(packets - channel_.requests);
    writes.pieces[0] = {reinterpret_cast<std::uintptr_t>(packets + rest.offset), rest.length,
                        own_key};
    writes.pieces[1] = {reinterpret_cast<std::uintptr_t>(&writes.header), kHalf, 0};
    writes.pieces[2] = {
        reinterpret_cast<std::uintptr_t>(packets) + layout().slot_stride - sizeof(std::uint64_t),
        sizeof(std::uint64_t), own_key};
    writes.first = rest.length == 0 ? 1 : 0;
    for (std::uint32_t i = 0; i < kMostRequestWrites; ++i) {
      ibv_send_wr& request = writes.requests[i];
      request = {};
      request.wr_id = header.sequence;
      request.next = i + 1 != kMostRequestWrites ? &writes.requests[i + 1] : nullptr;
      request.sg_list = &writes.pieces[i];
      request.num_sge = 1;
      request.opcode = IBV_WR_RDMA_WRITE;
      request.wr.rdma.remote_addr = to + (i == 0 ? rest.offset : 0);
      request.wr.rdma.rkey = peer.key;
    }
    writes.requests[1].send_flags = IBV_SEND_INLINE;
    ibv_send_wr& last = writes.requests[2];
    last.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
    last.wr.atomic.remote_addr = to + kHalf;
    last.wr.atomic.compare_add = before;
    last.wr.atomic.swap = flag_half(writes.header);
    last.wr.atomic.rkey = peer.key;
    ++prepared_;
  }

 private:
  /// The work requests of a slot: the rest, the half of the header without the flag, and the atomic
  /// operation on the half with the flag.
  struct Writes {
    ibv_send_wr requests[kMostRequestWrites];
    ibv_sge pieces[kMostRequestWrites];
    kernels::Packet header;  ///< of the latest request
    std::uint32_t first;     ///< of them: there may be no rest
    bool is_asked;           ///< posted, and its response has not arrived
  };

  bool poll() override {
    if (failed()) return false;
    bool worked = handler().post_sends();
    worked = poll_completions() || worked;
    worked = post_writes() || worked;
    if (worked || !adapter_->has_failed.load(std::memory_order_relaxed)) return worked;
    fail(adapter_->device.name() + " has failed");
    return true;
  }
  [[nodiscard]] progress::Expecting expecting() const override {
    return is_busy() ? progress::Expecting::from_device : progress::Expecting::nothing;
  }
  /// Responses arrive in memory without waking the thread, so it polls.
  core::Duration arm() override { return is_busy() ? kLookInterval : core::Duration::max(); }
  void disarm() override {}
  [[nodiscard]] bool is_busy() const {
    return !failed() && (completed_ != prepared_ || handler().awaits_content());
  }
  /// Posts as many writes as fit in the queue pair, as one list, of which the last is signaled.
  bool post_writes() {
    const std::uint64_t room = queue_->pair().capacity().max_send_wr / kMostRequestWrites;
    const std::uint64_t end = std::min(prepared_, completed_ + room);
    if (failed() || posted_ == end) return false;
    Writes& first = writes_of(posted_);
    for (; posted_ != end; ++posted_) {
      writes_of(posted_).is_asked = true;
      ibv_send_wr& last = writes_of(posted_).requests[kMostRequestWrites - 1];
      Writes& next = writes_of(posted_ + 1);
      last.next = posted_ + 1 != end ? &next.requests[next.first] : nullptr;
      if (posted_ + 1 == end) last.send_flags |= IBV_SEND_SIGNALED;
    }
    ibv_send_wr* bad = nullptr;
    const core::Status status = queue_->pair().post_send(first.requests[first.first], bad);
    if (!status.ok()) {
      fail("cannot write a request: " + std::string(describe(status.error())));
    }
    return true;
  }
  bool poll_completions() {
    std::array<ibv_wc, kMostCompletions> room;
    const auto done = completions_.poll(room);
    if (completions_.failed()) fail("the device has failed");
    std::size_t received = 0;
    for (const ibv_wc& completion : done) {
      if (completion.status != IBV_WC_SUCCESS) {
        fail("the connection broke: " + rdma::explain(completion.status, completion.vendor_err));
      } else if ((completion.opcode & IBV_WC_RECV) == 0) {
        for (; completed_ <= completion.wr_id; ++completed_) check_swap(completed_);
      } else {
        ++received;
        take_response(completion);
      }
      if (failed()) return true;
    }
    const core::Status status = post_receives(queue_->pair(), received);
    if (!status.ok()) {
      fail("cannot post a receive: " + std::string(describe(status.error())));
    }
    return !done.empty();
  }
  /// Checks that the flag of a request is in the worker's slot. That of an answered one is, and its
  /// slot may be another request's by now.
  void check_swap(std::uint64_t sequence) {
    const Writes& writes = writes_of(sequence);
    const ibv_send_wr& swap = writes.requests[kMostRequestWrites - 1];
    if (!writes.is_asked || swap.wr_id != sequence) return;
    const void* const replaced = std::bit_cast<const void*>(writes.pieces[2].addr);
    if (load_word(replaced) != swap.wr.atomic.compare_add) {
      fail("a slot of the worker does not hold the value that the last request wrote there");
    }
  }
  /// Makes a response valid: all of it is in its slot except the flag, which is that of the
  /// request. The requester checks the rest.
  void take_response(const ibv_wc& completion) {
    const std::uint32_t index = ntohl(completion.imm_data);
    const bool has_slot = completion.opcode == IBV_WC_RECV_RDMA_WITH_IMM && index < layout().depth;
    if (!has_slot || !std::exchange(writes_[index].is_asked, false)) {
      fail("the worker answered a request that it did not have");
      return;
    }
    kernels::rdma::set_flag(channel_.response(index), writes_[index].header.flag);
  }
  [[nodiscard]] Writes& writes_of(std::uint64_t sequence) noexcept {
    return writes_[layout().slot_index(sequence)];
  }

  progress::Engine* engine_;
  kernels::ChannelView channel_;
  std::shared_ptr<Adapter> adapter_;
  rdma::CompletionQueue completions_;
  std::unique_ptr<SlotEndpoint> queue_;
  std::vector<Writes> writes_;  ///< by slot
  // Slots: prepared >= posted >= completed.
  std::uint64_t prepared_ = 0;
  std::uint64_t posted_ = 0;
  std::uint64_t completed_ = 0;
};

}  // namespace

RdmaSlotEndpoint::RdmaSlotEndpoint(std::shared_ptr<Adapter> adapter, const rdma::PathOptions& path,
                                   const kernels::ChannelView& channel)
    : adapter_(std::move(adapter)),
      completions_(adapter_->device, sends_for(channel, kMostRequestWrites) + channel.layout.depth),
      queue_(std::make_unique<SlotEndpoint>(
          *adapter_, path,
          [&](const rdma::ProtectionDomain& domain) {
            return std::make_unique<PlainPair>(
                domain, completions_, sends_for(channel, kMostRequestWrites), channel.layout.depth);
          },
          SlotEndpoint::Written{responses_of(channel), Access::remote_write},
          requests_of(channel))) {
  const core::Status status = post_receives(queue_->pair(), channel.layout.depth);
  if (!status.ok()) {
    throw Error(status.error(), "cannot post receives on " + queue_->pair().described());
  }
}

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
            auto rings = make_slot_rings({*adapter_, domain, engine,
                                          std::bit_ceil(kMostResponseWrites * channel.layout.depth),
                                          sends_for(channel, kMostResponseWrites)},
                                         [this](const std::string& why) { fail(why); });
            rings_ = rings.get();
            return rings;
          },
          {requests_of(channel), Access::remote_write | Access::remote_atomic},
          responses_of(channel)),
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
  } catch (const std::exception& error) {  // this object destroys the queue pair
    core::log_error("the slots' queue did not stop: {}", core::what_of(error));
  }
}

}  // namespace offload::comch
