#include <array>
#include <cstring>
#include <vector>

#include "kernels/group.hpp"
#include "kernels/packets/card_queue.hpp"
#include "rdma/queues/entry_reader.hpp"
#include "rdma/queues/queue_memory.hpp"
#include "tests/fuzz/input.hpp"

/// Raw packets between a card and its user. A card's completions are not trusted: a packet lies in
/// a frame that was posted, and no frame is in two places. Nor does the model of a card trust
/// entries.
namespace offload::fuzz {
namespace {

using namespace kernels::packets;
using kernels::SingleLane;
namespace rdma_queues = offload::rdma;
namespace wire = kernels::rdma;

constexpr std::uint32_t kFrames = 8;  ///< in each ring of free frames
constexpr std::uint32_t kFrameBytes = 256;
constexpr std::uint32_t kBlocks = 2 * kFrames;
constexpr WaitLimit kAtOnce{0};

/// A queue without a card: the fuzzer's input writes its completions.
class Bench {
 public:
  Bench() {
    for (std::uint32_t home = 0; home < 2; ++home) {
      Home& made = made_[home];
      made.words[0] = kFrames;
      made.order = {kFrames, kFrames, 0, 0};
      for (std::uint32_t i = 0; i < kFrames; ++i) {
        made.entries[i] = (std::uint64_t{home} * kFrames + i) * kFrameBytes;
      }
      homes_[home] = {{made.entries, &made.words[0], &made.words[1], &made.words[2], kFrames - 1},
                      &made.order};
    }
    const rdma_queues::QueuePairMemory memory = rdma_queues::lay_out_queues(
        std::as_writable_bytes(std::span(lines_)), {kBlocks, kFrames}, 0x77);
    queue_.send = {memory.send, &state_, marks_.data()};
    queue_.sent = sent_.data();
    queue_.receive = memory.receive;
    queue_.receives = &receives_;
    queue_.posted = posted_.data();
    queue_.fill = homes_[0];
    queue_.free_frames = homes_[1];
    queue_.frames = {frames_.data(), homes_, kFrameBytes, kFrames, 2};
  }

  [[nodiscard]] const CardQueue& queue() const { return queue_; }
  /// Checks that no frame is in the rings or posted twice.
  void check() {
    std::array<std::uint32_t, 2 * kFrames> seen{};
    const auto count = [&seen](std::uint64_t address) {
      require(address < 2 * kFrames * std::uint64_t{kFrameBytes}, "an address is a frame's");
      require(++seen[address / kFrameBytes] == 1, "a frame is in one place");
    };
    for (const FrameRing& home : homes_) {
      for (std::uint32_t at = *home.ring.consumer; at != *home.ring.producer; ++at) {
        count(home.ring.at(at));
      }
    }
    for (std::uint32_t at = received; at != receives_.posted; ++at) {
      count(posted_[at % kFrames]);
    }
  }
  std::uint32_t received = 0;

 private:
  struct Home {
    std::uint64_t entries[kFrames];
    std::uint32_t words[3];
    RingOrder order;
  };
  struct alignas(rdma_queues::kQueueAlignment) Line {
    std::byte bytes[rdma_queues::kQueueAlignment];
  };

  Home made_[2]{};
  FrameRing homes_[2]{};
  std::vector<Line> lines_{rdma_queues::queue_memory_bytes({kBlocks, kFrames}) / sizeof(Line)};
  wire::SharedSendState state_{};
  CardReceives receives_{};
  std::array<std::uint64_t, kBlocks> marks_{};
  std::array<std::uint64_t, kBlocks> sent_{};
  std::array<std::uint64_t, kFrames> posted_{};
  std::vector<std::uint8_t> frames_ = std::vector<std::uint8_t>(2 * kFrames * kFrameBytes);
  CardQueue queue_{};
};

/// Returns the next completion of a queue: a valid one, with some bits of a word changed.
wire::Cqe made_up(Input& input, const wire::Completion& right, std::uint64_t index,
                  std::uint32_t log2) {
  wire::Cqe cqe = wire::make_cqe(right, index, log2);
  cqe.words[input.integer<std::uint8_t>() % 16] ^= input.integer<std::uint32_t>();
  return cqe;
}

void run_queue(Input input) {
  Bench bench;
  const CardQueue& queue = bench.queue();
  std::uint64_t polled = 0;
  std::uint16_t next_sent = 0;
  while (!input.rest().empty()) {
    const auto step = input.integer<std::uint8_t>();
    wire::Completion right{};
    if (step % 3 == 0) {
      const auto length = input.integer<std::uint16_t>();
      send_new(SingleLane{}, queue, 1, kAtOnce,
               [length](std::uint8_t*, std::uint32_t) { return std::uint32_t{length}; });
    } else if (step % 3 == 1) {
      const wire::CompletionQueue& to = queue.send.queue.completions;
      right.kind = wire::CqeKind::request;
      right.opcode = wire::Opcode::send;
      right.counter = next_sent++;
      to.entries[queue.send.state->polled % kBlocks] =
          made_up(input, right, queue.send.state->polled, to.log2);
      recycle(SingleLane{}, queue, kAtOnce);
      polled = queue.send.state->polled;
      require(queue.send.state->under_way <= kBlocks, "no more is under way than there is room");
    } else {
      const wire::CompletionQueue& to = queue.receive.completions;
      receive(SingleLane{}, queue, bench.received, kFrames, kAtOnce);  // posts frames
      right.kind = wire::CqeKind::received_send;
      right.counter = static_cast<std::uint16_t>(bench.received);
      right.byte_count = input.integer<std::uint16_t>();
      to.entries[bench.received % kFrames] = made_up(input, right, bench.received, to.log2);
      const FrameBatch batch = receive(SingleLane{}, queue, bench.received, kFrames, kAtOnce);
      finish(SingleLane{}, queue, queue, bench.received, batch, kAtOnce,
             [&queue](const EthernetFrame& packet) {
               require(queue.frames.holds({packet.address, packet.length, 0}) &&
                           packet.data == queue.frames.bytes + packet.address,
                       "a packet lies in a frame");
               return packet.length % 2 == 0 ? Verdict::send : Verdict::drop;
             });
    }
    bench.check();
  }
  require(polled <= queue.send.state->polled, "completions are counted");
}

/// Reads entries of arbitrary bytes: reads stay in the ring, and the results are consistent.
void run_entries(Input input, rdma_queues::EntryFormat format, rdma_queues::Reading reading) {
  std::array<wire::Segment, kBlocks * wire::kSegmentsPerBlock> ring{};
  std::uint32_t records[2] = {};
  std::uint64_t doorbell = 0;
  const wire::SendQueue queue{
      {ring.data(), kBlocks}, 0x77, &records[0], &doorbell, {nullptr, 4, &records[1]}};
  const auto blocks = std::uint32_t{input.integer<std::uint8_t>()} % kBlocks + 1;
  const std::size_t bytes = std::min(input.rest().size(), sizeof ring);
  if (bytes != 0) std::memcpy(ring.data(), input.rest().data(), bytes);
  // Otherwise hardly any entry would get past its control segment.
  for (std::uint32_t i = 0; i < blocks; ++i) {
    wire::Segment& control = queue.ring.at(i, 0);
    // The operation and its modifier.
    control.words[0] =
        wire::big_endian(i << 8 | (wire::big_endian(control.words[0]) & 0xff00'00ffU));
    control.words[1] = wire::big_endian(0x7700U | (wire::big_endian(control.words[1]) & 0x3fU));
    if (reading == rdma_queues::Reading::as_card) continue;
    control.words[2] = 0;
    control.words[3] = 0;
  }
  wire::ring_up_to(queue, blocks, 0);
  rdma_queues::EntryReader reader(queue, format, reading);
  reader.look();
  rdma_queues::Entry entry;
  std::vector<std::byte> room(rdma_queues::kMostInline);
  while (reader.has_entry() && reader.read(entry, room.data())) {
    require(entry.end() <= blocks, "an entry is published");
    require(entry.work.inline_length <= (entry.segments - 1) * sizeof(wire::Segment),
            "inline data lies in its entry");
    require(entry.work.buffer_count < entry.segments, "so do buffers");
    const std::uint64_t mask = entry.work.awaited.mask;
    require(mask != 0 && (mask & (mask + 1)) == 0, "a wait has a range");
    reader.pass(entry);
  }
  require(!reader.has_entry(), "the reading ends");
}

void run(const Input& input) {
  using rdma_queues::EntryFormat;
  using rdma_queues::Reading;
  run_queue(input);
  for (const EntryFormat format : {EntryFormat::raw_packet, EntryFormat::rdma}) {
    for (const Reading reading : {Reading::strict, Reading::as_card}) {
      run_entries(input, format, reading);
    }
  }
}

}  // namespace
}  // namespace offload::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  offload::fuzz::run({data, size});
  return 0;
}
