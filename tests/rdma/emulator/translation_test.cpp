#include "rdma/emulator/translation.hpp"

#include <gtest/gtest.h>

#include <array>
#include <tuple>
#include <utility>

#include "rdma/verbs/queue_pair.hpp"

/// Entries of a card as work requests of verbs.
namespace offload::rdma {
namespace {

using kernels::rdma::CqeKind;
using kernels::rdma::Opcode;
using kernels::rdma::Syndrome;

constexpr QueueLimits kReliable{true, 4, 64};
constexpr QueueLimits kUnreliable{false, 4, 64};

/// Makes an entry with that number of buffers, of 100, 101 ... bytes.
void make(Entry& entry, Opcode opcode, std::uint32_t buffers = 1) {
  entry.work = {};
  entry.work.opcode = opcode;
  entry.work.remote = {0x1000, 9};
  entry.work.buffer_count = buffers;
  for (std::uint32_t i = 0; i < buffers; ++i) entry.buffers[i] = {4096U * (i + 1), 100 + i, 7 + i};
}

TEST(Translation, AnEntryHasTheBytesOfAllItsParts) {
  Entry entry{};
  make(entry, Opcode::send, 3);
  EXPECT_EQ(length_of(entry), 100U + 101 + 102);
  entry.buffers[0].length = entry.buffers[1].length = ~0U;
  EXPECT_EQ(length_of(entry), 2 * std::uint64_t{~0U} + 102);
  make(entry, Opcode::send, 0);
  EXPECT_EQ(length_of(entry), 0U);
  entry.work.inline_length = 33;
  EXPECT_EQ(length_of(entry), 33U);
}

TEST(Translation, ReadsAndAtomicsNeedAReliableConnection) {
  for (const auto& [opcode, needs] :
       {std::pair{Opcode::send, false}, std::pair{Opcode::send_with_imm, false},
        std::pair{Opcode::rdma_write, false}, std::pair{Opcode::rdma_write_with_imm, false},
        std::pair{Opcode::rdma_read, true}, std::pair{Opcode::compare_swap, true},
        std::pair{Opcode::fetch_add, true}}) {
    Entry entry{};
    make(entry, opcode);
    EXPECT_EQ(refusal_of(entry, 8, kReliable), Syndrome::none) << static_cast<int>(opcode);
    EXPECT_EQ(refusal_of(entry, 8, kUnreliable),
              needs ? Syndrome::local_queue_operation : Syndrome::none)
        << static_cast<int>(opcode);
  }
}

TEST(Translation, AnEntryThatADeviceWouldRefuseIsRefusedHere) {
  Entry entry{};
  make(entry, Opcode::wait, 0);
  EXPECT_EQ(refusal_of(entry, 0, kReliable), Syndrome::local_queue_operation);
  for (const Opcode without_request : {Opcode::nop, kDump}) {
    make(entry, without_request, 5);
    EXPECT_EQ(refusal_of(entry, kMaxMessage + 1, kReliable), Syndrome::none);
  }
  make(entry, Opcode::send, 4);
  EXPECT_EQ(refusal_of(entry, 8, kReliable), Syndrome::none);
  make(entry, Opcode::send, 5);
  EXPECT_EQ(refusal_of(entry, 8, kReliable), Syndrome::local_queue_operation);
  make(entry, Opcode::send);
  EXPECT_EQ(refusal_of(entry, kMaxMessage, kReliable), Syndrome::none);
  EXPECT_EQ(refusal_of(entry, kMaxMessage + 1, kReliable), Syndrome::local_length);
  make(entry, Opcode::fetch_add);
  for (const std::uint64_t length : {0U, 7U, 9U, 16U}) {
    EXPECT_EQ(refusal_of(entry, length, kReliable), Syndrome::local_length) << length;
  }
  for (const std::uint64_t offset : {1U, 4U, 7U}) {
    entry.work.remote.address = 0x1000 + offset;
    EXPECT_EQ(refusal_of(entry, 8, kReliable), Syndrome::remote_invalid_request) << offset;
  }
}

struct Request {
  ibv_send_wr request{};
  std::array<ibv_sge, 5> pieces{};
};

Request request_of(const Entry& entry, const QueueLimits& limits = kReliable) {
  Request made;
  fill_request(entry, limits, 77, made.pieces.data(), made.request);
  EXPECT_NE(made.request.sg_list, nullptr);
  return made;
}

TEST(Translation, EachOperationHasItsRequest) {
  for (const auto& [opcode, expected] :
       {std::pair{Opcode::send, IBV_WR_SEND},
        std::pair{Opcode::send_with_imm, IBV_WR_SEND_WITH_IMM},
        std::pair{Opcode::rdma_write, IBV_WR_RDMA_WRITE},
        std::pair{Opcode::rdma_write_with_imm, IBV_WR_RDMA_WRITE_WITH_IMM},
        std::pair{Opcode::rdma_read, IBV_WR_RDMA_READ}}) {
    Entry entry{};
    make(entry, opcode, 2);
    entry.work.immediate = 0x0102'0304;
    const Request made = request_of(entry);
    EXPECT_EQ(made.request.opcode, expected);
    EXPECT_EQ(made.request.imm_data, 0x0102'0304U);
    EXPECT_EQ(made.request.wr.rdma.remote_addr, 0x1000U);
    EXPECT_EQ(made.request.wr.rdma.rkey, 9U);
    EXPECT_EQ(made.request.send_flags, 0U);
    ASSERT_EQ(made.request.num_sge, 2);
    EXPECT_EQ(made.pieces[1].addr, 8192U);
    EXPECT_EQ(made.pieces[1].length, 101U);
    EXPECT_EQ(made.pieces[1].lkey, 8U);
  }
  for (const auto& [opcode, expected] :
       {std::pair{Opcode::compare_swap, IBV_WR_ATOMIC_CMP_AND_SWP},
        std::pair{Opcode::fetch_add, IBV_WR_ATOMIC_FETCH_AND_ADD}}) {
    Entry entry{};
    make(entry, opcode);
    entry.work.compare_add = 5;
    entry.work.swap = 6;
    const Request made = request_of(entry);
    EXPECT_EQ(made.request.opcode, expected);
    EXPECT_EQ(made.request.wr.atomic.remote_addr, 0x1000U);
    EXPECT_EQ(made.request.wr.atomic.rkey, 9U);
    EXPECT_EQ(made.request.wr.atomic.compare_add, 5U);
    EXPECT_EQ(made.request.wr.atomic.swap, 6U);
  }
}

TEST(Translation, FlagsAreThoseOfVerbs) {
  using namespace kernels::rdma;  // the flags
  for (const auto& [flags, reliable, unreliable] :
       {std::tuple{unsigned{kSignaled}, unsigned{IBV_SEND_SIGNALED}, unsigned{IBV_SEND_SIGNALED}},
        std::tuple{unsigned{kSolicited}, unsigned{IBV_SEND_SOLICITED},
                   unsigned{IBV_SEND_SOLICITED}},
        std::tuple{unsigned{kSmallFence}, unsigned{IBV_SEND_FENCE}, 0U},
        std::tuple{unsigned{kFence}, unsigned{IBV_SEND_FENCE}, 0U},
        std::tuple{kSignaled | unsigned{kFence}, IBV_SEND_SIGNALED | unsigned{IBV_SEND_FENCE},
                   unsigned{IBV_SEND_SIGNALED}}}) {
    Entry entry{};
    make(entry, Opcode::send);
    entry.work.flags = static_cast<std::uint8_t>(flags);
    EXPECT_EQ(request_of(entry, kReliable).request.send_flags, reliable);
    EXPECT_EQ(request_of(entry, kUnreliable).request.send_flags, unreliable);
  }
}

TEST(Translation, InlineDataIsInlineIfTheDeviceTakesThatMuch) {
  const std::array<std::byte, 100> data{};
  for (const std::uint32_t length : {1U, 64U, 65U}) {
    Entry entry{};
    make(entry, Opcode::send, 0);
    entry.work.inline_data = data.data();
    entry.work.inline_length = length;
    const Request made = request_of(entry);
    EXPECT_EQ(made.request.send_flags, length <= 64 ? unsigned{IBV_SEND_INLINE} : 0U) << length;
    ASSERT_EQ(made.request.num_sge, 1);
    EXPECT_EQ(made.pieces[0].addr, reinterpret_cast<std::uint64_t>(data.data()));
    EXPECT_EQ(made.pieces[0].length, length);
    EXPECT_EQ(made.pieces[0].lkey, 77U);
  }
}

TEST(Translation, EachStatusHasTheSyndromeOfACard) {
  for (const auto& [status, syndrome] :
       {std::pair{IBV_WC_SUCCESS, Syndrome::none},
        std::pair{IBV_WC_LOC_LEN_ERR, Syndrome::local_length},
        std::pair{IBV_WC_LOC_QP_OP_ERR, Syndrome::local_queue_operation},
        std::pair{IBV_WC_LOC_PROT_ERR, Syndrome::local_protection},
        std::pair{IBV_WC_WR_FLUSH_ERR, Syndrome::flushed},
        std::pair{IBV_WC_BAD_RESP_ERR, Syndrome::bad_response},
        std::pair{IBV_WC_LOC_ACCESS_ERR, Syndrome::local_access},
        std::pair{IBV_WC_REM_INV_REQ_ERR, Syndrome::remote_invalid_request},
        std::pair{IBV_WC_REM_ACCESS_ERR, Syndrome::remote_access},
        std::pair{IBV_WC_REM_OP_ERR, Syndrome::remote_operation},
        std::pair{IBV_WC_RETRY_EXC_ERR, Syndrome::transport_retries},
        std::pair{IBV_WC_RESP_TIMEOUT_ERR, Syndrome::transport_retries},
        std::pair{IBV_WC_RNR_RETRY_EXC_ERR, Syndrome::receiver_not_ready},
        std::pair{IBV_WC_REM_ABORT_ERR, Syndrome::remote_aborted},
        std::pair{IBV_WC_GENERAL_ERR, Syndrome::local_queue_operation}}) {
    EXPECT_EQ(syndrome_of(status), syndrome) << status;
  }
}

TEST(Translation, AReceiveHasItsKind) {
  struct Case {
    ibv_wc_opcode opcode;
    unsigned flags;
    CqeKind kind;
  };
  for (const Case& one :
       {Case{IBV_WC_RECV, 0, CqeKind::received_send},
        Case{IBV_WC_RECV, IBV_WC_GRH, CqeKind::received_send},
        Case{IBV_WC_RECV, IBV_WC_WITH_IMM, CqeKind::received_send_with_imm},
        Case{IBV_WC_RECV_RDMA_WITH_IMM, IBV_WC_WITH_IMM, CqeKind::received_write_with_imm}}) {
    ibv_wc told{};
    told.status = IBV_WC_SUCCESS;
    told.opcode = one.opcode;
    told.wc_flags = one.flags;
    told.byte_len = 1234;
    told.imm_data = 0x55;
    const auto completion = received(told, 0x42, 0x3'abcd);
    EXPECT_EQ(completion.kind, one.kind);
    EXPECT_EQ(completion.counter, 0xabcd);
    EXPECT_EQ(completion.queue, 0x42U);
    EXPECT_EQ(completion.byte_count, 1234U);
    EXPECT_EQ(completion.immediate, (one.flags & IBV_WC_WITH_IMM) != 0 ? 0x55U : 0U);
  }
  ibv_wc told{};
  told.status = IBV_WC_LOC_LEN_ERR;
  told.vendor_err = 0x193;
  const auto completion = received(told, 0x42, 7);
  EXPECT_EQ(completion.kind, CqeKind::receive_error);
  EXPECT_EQ(completion.syndrome, Syndrome::local_length);
  EXPECT_EQ(completion.vendor, 0x93);
  EXPECT_EQ(completion.counter, 7);
}

}  // namespace
}  // namespace offload::rdma
