#include "kernels/rdma/cqe.hpp"

#include <gtest/gtest.h>
#include <infiniband/mlx5dv.h>

#include <cstring>

/// Completions are those that infiniband/mlx5dv.h describes.
namespace offload::kernels::rdma {
namespace {

TEST(Cqe, NumbersAreThoseOfMlx5) {
  const std::pair<CqeKind, int> kinds[] = {
      {CqeKind::request, MLX5_CQE_REQ},
      {CqeKind::received_write_with_imm, MLX5_CQE_RESP_WR_IMM},
      {CqeKind::received_send, MLX5_CQE_RESP_SEND},
      {CqeKind::received_send_with_imm, MLX5_CQE_RESP_SEND_IMM},
      {CqeKind::request_error, MLX5_CQE_REQ_ERR},
      {CqeKind::receive_error, MLX5_CQE_RESP_ERR},
      {CqeKind::invalid, MLX5_CQE_INVALID}};
  for (const auto& [ours, theirs] : kinds) EXPECT_EQ(static_cast<int>(ours), theirs);
  const std::pair<Syndrome, int> syndromes[] = {
      {Syndrome::local_length, MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR},
      {Syndrome::local_queue_operation, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR},
      {Syndrome::local_protection, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR},
      {Syndrome::flushed, MLX5_CQE_SYNDROME_WR_FLUSH_ERR},
      {Syndrome::bad_response, MLX5_CQE_SYNDROME_BAD_RESP_ERR},
      {Syndrome::local_access, MLX5_CQE_SYNDROME_LOCAL_ACCESS_ERR},
      {Syndrome::remote_invalid_request, MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR},
      {Syndrome::remote_access, MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR},
      {Syndrome::remote_operation, MLX5_CQE_SYNDROME_REMOTE_OP_ERR},
      {Syndrome::transport_retries, MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR},
      {Syndrome::receiver_not_ready, MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR},
      {Syndrome::remote_aborted, MLX5_CQE_SYNDROME_REMOTE_ABORTED_ERR}};
  for (const auto& [ours, theirs] : syndromes) EXPECT_EQ(static_cast<int>(ours), theirs);
}

Cqe as_ours(const void* theirs) {
  Cqe cqe;
  std::memcpy(&cqe, theirs, sizeof cqe);
  return cqe;
}

TEST(Cqe, IsReadWhereMlx5HasItsFields) {
  mlx5_cqe64 theirs{};
  theirs.imm_inval_pkey = 0x0102'0304;
  theirs.byte_cnt = htobe32(4711);
  theirs.sop_drop_qpn = htobe32(0x0a00'0042);
  theirs.wqe_counter = htobe16(0xabcd);
  theirs.op_own = MLX5_CQE_RESP_SEND_IMM << 4 | 1;
  const Completion completion = read_cqe(as_ours(&theirs));
  EXPECT_EQ(completion.kind, CqeKind::received_send_with_imm);
  EXPECT_EQ(completion.counter, 0xabcd);
  EXPECT_EQ(completion.queue, 0x42U);
  EXPECT_EQ(completion.byte_count, 4711U);
  EXPECT_EQ(completion.immediate, 0x0102'0304U);
  EXPECT_FALSE(completion.is_error());
}

TEST(Cqe, ARequestHasItsOpcode) {
  mlx5_cqe64 theirs{};
  theirs.sop_drop_qpn = htobe32(std::uint32_t{MLX5_OPCODE_RDMA_READ} << 24 | 0x42);
  theirs.op_own = MLX5_CQE_REQ << 4;
  const Completion completion = read_cqe(as_ours(&theirs));
  EXPECT_EQ(completion.opcode, Opcode::rdma_read);
  EXPECT_EQ(completion.queue, 0x42U);
  const Cqe made = make_cqe(completion, 0, 4);
  EXPECT_EQ(made.words[kCqeQueue], theirs.sop_drop_qpn);
}

TEST(Cqe, OfAReceiveHasNoOpcodeButItsSharedQueue) {
  Completion made{};
  made.kind = CqeKind::received_send;
  made.opcode = Opcode::rdma_read;
  made.queue = 0x12'3456;
  made.shared_receives = 0x77;
  const Cqe cqe = make_cqe(made, 0, 4);
  EXPECT_EQ(big_endian(cqe.words[kCqeQueue]), 0x12'3456U);
  EXPECT_EQ(big_endian(cqe.words[kCqeShared]), 0x77U);
  EXPECT_EQ(read_cqe(cqe).opcode, Opcode::nop);
}

TEST(Cqe, AnErrorHasItsSyndromes) {
  mlx5_err_cqe theirs{};
  theirs.vendor_err_synd = 0x93;
  theirs.syndrome = MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR;
  theirs.s_wqe_opcode_qpn = htobe32(0x0800'0007);
  theirs.wqe_counter = htobe16(9);
  theirs.op_own = static_cast<std::uint8_t>(MLX5_CQE_REQ_ERR << 4);
  const Completion completion = read_cqe(as_ours(&theirs));
  EXPECT_TRUE(completion.is_error());
  EXPECT_EQ(completion.syndrome, Syndrome::remote_access);
  EXPECT_EQ(completion.vendor, 0x93);
  EXPECT_EQ(completion.queue, 7U);
  EXPECT_EQ(completion.counter, 9);
}

TEST(Cqe, WhatIsMadeIsRead) {
  for (const CqeKind kind : {CqeKind::request, CqeKind::received_send, CqeKind::receive_error}) {
    Completion made{};
    made.kind = kind;
    made.counter = 0xfffe;
    made.queue = 0xab'cdef;
    if (made.is_error()) {
      made.syndrome = Syndrome::flushed;
      made.vendor = 3;
    } else {
      made.byte_count = 0x8000'0001;
      made.immediate = 77;
    }
    const Completion read = read_cqe(make_cqe(made, 5, 2));
    EXPECT_EQ(read.kind, made.kind);
    EXPECT_EQ(read.counter, made.counter);
    EXPECT_EQ(read.queue, made.queue);
    EXPECT_EQ(read.syndrome, made.syndrome);
    EXPECT_EQ(read.vendor, made.vendor);
    EXPECT_EQ(read.byte_count, made.byte_count);
    EXPECT_EQ(read.immediate, made.immediate);
  }
}

TEST(Cqe, IsThereInItsOwnLapAlone) {
  const Cqe cqe = make_cqe({}, 4 + 1, 2);
  EXPECT_TRUE(is_there(cqe.words[kCqeOwner], 5, 2));
  EXPECT_FALSE(is_there(cqe.words[kCqeOwner], 1, 2));
  EXPECT_FALSE(is_there(cqe.words[kCqeOwner], 9, 2));
  Completion nobody{};
  nobody.kind = CqeKind::invalid;
  for (const std::uint64_t index : {0U, 4U}) {
    EXPECT_FALSE(is_there(make_cqe(nobody, index, 2).words[kCqeOwner], index, 2));
  }
}

}  // namespace
}  // namespace offload::kernels::rdma
