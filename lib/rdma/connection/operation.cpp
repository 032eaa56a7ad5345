#include "rdma/connection/operation.hpp"

#include <arpa/inet.h>

#include "rdma/connection/append.hpp"

namespace offload::rdma {

void Receive::clear() noexcept {
  completion_ = IBV_WC_SUCCESS;
  vendor_ = 0;
  length_ = 0;
  immediate_.reset();
  written_elsewhere_ = false;
}

core::Status Receive::take(const ibv_wc& completion) noexcept {
  if (completion.status != IBV_WC_SUCCESS) {
    completion_ = completion.status;
    vendor_ = completion.vendor_err;
    return core::ErrorCode::io_failed;
  }
  length_ = completion.byte_len;
  written_elsewhere_ = completion.opcode == IBV_WC_RECV_RDMA_WITH_IMM;
  if ((completion.wc_flags & IBV_WC_WITH_IMM) != 0) immediate_ = ntohl(completion.imm_data);
  if (!written_elsewhere_) append(destination, length_);
  return {};
}

}  // namespace offload::rdma
