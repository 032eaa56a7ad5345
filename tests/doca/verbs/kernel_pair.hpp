#pragma once

#include <cstddef>
#include <cstdint>
#include <doca_gpunetio_dev_verbs_qp.cuh>
#include <vector>

#include "softcard/card/card.hpp"
#include "tests/kernels/rdma/model_card.hpp"

namespace offload::doca {

/// A queue pair of the model of a card, as doca_gpu_verbs_export_qp() makes it known to kernels.
class KernelPair {
 public:
  KernelPair(kernels::rdma::test::ModelCard& card, std::uint32_t blocks, std::uint32_t receives)
      : memory_(kernels::rdma::test::ModelCard::bytes_for(blocks, receives) / sizeof(Line)),
        send_marks_(blocks),
        receive_marks_(receives),
        model(card.add(memory_.data(), blocks, receives)) {
    using Card = rdma::model::Card;
    model.send.completions.number = Card::completions_of_sends(model.send.number);
    model.receive.completions.number = Card::completions_of_receives(model.send.number);
    handle.sq_wqe_mask = blocks - 1;
    handle.cq_sq = {0, (std::uint64_t{1} << model.send.completions.log2) - 1, &handle, 0, 0};
    handle.cq_rq = {0, (std::uint64_t{1} << model.receive.completions.log2) - 1, &handle, 1, 0};
    handle.sends = {model.send, &send_state_, send_marks_.data()};
    handle.receives = {model.receive, &receive_state_, receive_marks_.data()};
  }
  KernelPair& operator=(KernelPair&&) = delete;

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };

  std::vector<Line> memory_;
  std::vector<std::uint64_t> send_marks_;
  std::vector<std::uint64_t> receive_marks_;
  kernels::rdma::SharedSendState send_state_{};
  kernels::rdma::CommonReceiveState receive_state_{};

 public:
  kernels::rdma::test::ModelPair model;
  doca_gpu_dev_verbs_qp handle{};
};

}  // namespace offload::doca
