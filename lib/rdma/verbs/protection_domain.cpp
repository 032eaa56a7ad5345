#include "rdma/verbs/protection_domain.hpp"

namespace offload::rdma {

ProtectionDomain ProtectionDomain::import(ibv_pd* native) {
  if (native == nullptr) {
    throw core::Error(core::ErrorCode::invalid_value, "import of no protection domain");
  }
  return ProtectionDomain(Native::borrow(native));
}

device::Support ProtectionDomain::supports_dma_buf() const {
  // No descriptor: what can register dma-bufs complains about that, what cannot about the call.
  errno = 0;
  Handle<ibv_mr, ibv_dereg_mr> none(ibv_reg_dmabuf_mr(get(), 0, 4096, 0, -1, 0), "a region");
  const int errnum = errno;
  if (errnum == EBADF) return {true, {}};
  return {false, device_name() + " registers no dma-buf: " + core::describe_errno(errnum)};
}

}  // namespace offload::rdma
