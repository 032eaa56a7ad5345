/// Posts the same requests to a queue of libmlx5 and to one of kernels/rdma, and compares all that
/// a card would see: entries, records and the doorbell. Then makes a completion for libmlx5 to
/// poll, and compares what it says. Exit status 0 only without a difference. usage: compare POSTS
/// [VECTORS]: also writes some of the requests and libmlx5's entries to a file

#include <cstdlib>
#include <fstream>
#include <iostream>

#include "kernels/rdma/queue_pair.hpp"
#include "libmlx5_queue.h"
#include "tests/kernels/rdma/entry_vector.hpp"

namespace offload::kernels::rdma::test {
namespace {

constexpr std::uint32_t kBlocks = 64;
constexpr std::uint32_t kReceives = 16;
constexpr std::uint32_t kLog2 = 7;  ///< of completions
constexpr std::uint32_t kNumber = 0x4711;
constexpr std::size_t kVectors = 250;

[[noreturn]] void differ(const std::string& what, const EntryVector& vector) {
  std::cerr << "DIFFERENT: " << what << "\n" << vector;
  std::exit(1);
}

/// Both queues, in step.
class Pair {
 public:
  Pair()
      : theirs_(libmlx5_queue_make(kNumber, kBlocks, kReceives, 1U << kLog2)),
        memory_(libmlx5_memory_of(theirs_)),
        completions_{static_cast<Cqe*>(memory_.completions), kLog2, &own_records_[2]} {}

  /// Posts it to both. The entry that libmlx5 made is in `vector` then.
  void post(EntryVector& vector) {
    vector.position = state_.posted;
    vector.queue = kNumber;
    const SendWork work = vector.request();
    std::memset(memory_.sends, 0, kBlocks * kBlockBytes);  // it leaves the rest of inline data
    if (post_send(send_, state_, work) != Posted::done) differ("no room", vector);
    publish(send_, state_);
    if (const int status = post_to_libmlx5(vector, work); status != 0) {
      differ("libmlx5 returned " + std::to_string(status), vector);
    }
    const std::uint32_t segments = segments_of(work);
    const SendRing theirs{static_cast<Segment*>(memory_.sends), kBlocks};
    vector.entry.clear();
    for (std::uint32_t i = 0; i < segments; ++i) {
      const auto* const from = reinterpret_cast<std::uint8_t*>(&theirs.at(vector.position, i));
      vector.entry.insert(vector.entry.end(), from, from + sizeof(Segment));
      if (std::memcmp(from, &send_.ring.at(vector.position, i), sizeof(Segment)) != 0) {
        differ("segment " + std::to_string(i), vector);
      }
    }
    if (memory_.records[1] != own_records_[1]) differ("record", vector);
    if (*memory_.doorbell != own_doorbell_) differ("doorbell", vector);
  }

  /// Completes it, in a way of `random`'s, and compares what libmlx5 says.
  void complete(const EntryVector& vector, std::mt19937_64& random) {
    Completion made{};
    made.counter = static_cast<std::uint16_t>(vector.position);
    made.queue = kNumber;
    made.opcode = vector.work.opcode;
    made.byte_count = static_cast<std::uint32_t>(random());
    const bool fails = random() % 8 == 0;
    if (fails) {
      made.kind = CqeKind::request_error;
      made.syndrome = Syndrome::remote_access;
      made.vendor = static_cast<std::uint8_t>(random());
    }
    const ibv_wc told = poll_both(made, vector);
    if (told.wr_id != vector.position) differ("wr_id", vector);
    if (told.status != (fails ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS)) differ("status", vector);
    if (fails && told.vendor_err != made.vendor) differ("vendor_err", vector);
    if (!fails && told.opcode != opcode_of(made.opcode)) differ("opcode", vector);
    if (!fails && made.opcode == Opcode::rdma_read && told.byte_len != made.byte_count) {
      differ("byte_len", vector);
    }
  }

  /// Posts a receive to both, completes it, and compares.
  void receive(std::mt19937_64& random) {
    const LocalBuffer buffer{random(), 1 + static_cast<std::uint32_t>(random() >> 34),
                             static_cast<std::uint32_t>(random())};
    const std::uint64_t index = received_.posted & (kReceives - 1);
    ibv_sge piece{buffer.address, buffer.length, buffer.lkey};
    ibv_recv_wr request{received_.posted, nullptr, &piece, 1};
    EntryVector none;
    if (libmlx5_post_recv(theirs_, &request) != 0) differ("a receive is not taken", none);
    if (post_receive(receive_, received_, buffer) != Posted::done) differ("no receive", none);
    publish(receive_, received_);
    const auto* const ring = static_cast<Segment*>(memory_.receives);
    if (std::memcmp(&ring[index], &receive_.ring[index], sizeof(Segment)) != 0) {
      differ("receive", none);
    }
    if (memory_.records[0] != own_records_[0]) differ("record of receives", none);

    constexpr CqeKind kKinds[] = {CqeKind::received_send, CqeKind::received_send_with_imm,
                                  CqeKind::received_write_with_imm};
    Completion made{};
    made.kind = kKinds[random() % std::size(kKinds)];
    made.counter = static_cast<std::uint16_t>(received_.polled++);
    made.queue = kNumber;
    made.byte_count = static_cast<std::uint32_t>(random());
    made.immediate = static_cast<std::uint32_t>(random());
    const ibv_wc told = poll_both(made, none);
    const bool with_imm = made.kind != CqeKind::received_send;
    const bool written = made.kind == CqeKind::received_write_with_imm;
    if (told.wr_id != request.wr_id || told.status != IBV_WC_SUCCESS ||
        told.opcode != (written ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV) ||
        told.byte_len != made.byte_count || ((told.wc_flags & IBV_WC_WITH_IMM) != 0) != with_imm ||
        (with_imm && told.imm_data != made.immediate)) {
      differ("a receive's completion", none);
    }
  }

 private:
  int post_to_libmlx5(const EntryVector& vector, const SendWork& work) {
    std::vector<ibv_sge> pieces;
    for (const LocalBuffer& buffer : vector.buffers) {
      pieces.push_back({buffer.address, buffer.length, buffer.lkey});
    }
    ibv_send_wr request{};
    if (!vector.inline_data.empty()) {
      pieces = {{reinterpret_cast<std::uint64_t>(vector.inline_data.data()),
                 static_cast<std::uint32_t>(vector.inline_data.size()), 0}};
      request.send_flags |= IBV_SEND_INLINE;
    }
    request.wr_id = vector.position;
    request.sg_list = pieces.data();
    request.num_sge = static_cast<int>(pieces.size());
    if ((work.flags & kSignaled) != 0) request.send_flags |= IBV_SEND_SIGNALED;
    if ((work.flags & kSolicited) != 0) request.send_flags |= IBV_SEND_SOLICITED;
    if ((work.flags & kFence) == kFence) request.send_flags |= IBV_SEND_FENCE;
    request.imm_data = work.immediate;
    request.wr.rdma = {work.remote.address, work.remote.rkey};
    switch (work.opcode) {
      case Opcode::rdma_write: request.opcode = IBV_WR_RDMA_WRITE; break;
      case Opcode::rdma_write_with_imm: request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM; break;
      case Opcode::send: request.opcode = IBV_WR_SEND; break;
      case Opcode::send_with_imm: request.opcode = IBV_WR_SEND_WITH_IMM; break;
      case Opcode::rdma_read: request.opcode = IBV_WR_RDMA_READ; break;
      case Opcode::compare_swap: request.opcode = IBV_WR_ATOMIC_CMP_AND_SWP; break;
      case Opcode::fetch_add: request.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD; break;
      default: std::abort();
    }
    if (is_atomic(work.opcode)) {
      request.wr.atomic = {work.remote.address, work.compare_add, work.swap, work.remote.rkey};
    }
    return libmlx5_post_send(theirs_, &request);
  }

  /// Writes a completion where libmlx5 looks, has it and ours read it, and frees the entry.
  ibv_wc poll_both(const Completion& made, const EntryVector& vector) {
    completions_.entries[polled_ & ((1U << kLog2) - 1)] = make_cqe(made, polled_, kLog2);
    ibv_wc told{};
    if (libmlx5_poll_cq(theirs_, &told) != 1) differ("libmlx5 sees no completion", vector);
    Completion read{};
    if (!poll_completion(completions_, polled_++, read)) differ("we see no completion", vector);
    free_completions(completions_, polled_);
    if (*memory_.completion_record != own_records_[2]) differ("record of completions", vector);
    state_.completed = state_.posted;
    return told;
  }

  static ibv_wc_opcode opcode_of(Opcode opcode) {
    switch (opcode) {
      case Opcode::rdma_read: return IBV_WC_RDMA_READ;
      case Opcode::compare_swap: return IBV_WC_COMP_SWAP;
      case Opcode::fetch_add: return IBV_WC_FETCH_ADD;
      case Opcode::send:
      case Opcode::send_with_imm: return IBV_WC_SEND;
      default: return IBV_WC_RDMA_WRITE;
    }
  }

  libmlx5_queue* theirs_;
  libmlx5_memory memory_;
  alignas(64) std::uint32_t own_records_[3]{};
  alignas(64) std::uint64_t own_doorbell_ = 0;
  std::vector<Segment> own_ring_ = std::vector<Segment>(kBlocks * kSegmentsPerBlock);
  std::vector<Segment> own_receives_ = std::vector<Segment>(kReceives);
  CompletionQueue completions_;
  SendQueue send_{
      {own_ring_.data(), kBlocks}, kNumber, &own_records_[1], &own_doorbell_, completions_};
  ReceiveQueue receive_{own_receives_.data(), kReceives, &own_records_[0], completions_};
  SendState state_;
  ReceiveState received_;
  std::uint64_t polled_ = 0;
};

int compare(std::uint64_t posts, const char* file) {
  std::mt19937_64 random(4);
  std::ofstream vectors;
  if (file != nullptr) vectors.open(file);
  Pair pair;
  for (std::uint64_t i = 0; i < posts; ++i) {
    EntryVector vector = any_request(random, i < kVectors ? 120 : 900);
    pair.post(vector);
    if (i < kVectors && vectors.is_open()) vectors << vector;
    pair.complete(vector, random);
    if (i % 8 == 0) pair.receive(random);
  }
  std::cout << posts << " requests, " << (posts + 7) / 8
            << " receives and a completion for each: no difference\n";
  return vectors.fail() ? 1 : 0;
}

}  // namespace
}  // namespace offload::kernels::rdma::test

int main(int argc, char** argv) {
  const std::uint64_t posts = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1'000'000;
  return offload::kernels::rdma::test::compare(posts, argc > 2 ? argv[2] : nullptr);
}
