#include "rdma/verbs/protection_domain.hpp"

#include "core/log.hpp"

namespace offload::rdma {
namespace {

memory::MemoryKey key_of(ibv_mr* region) noexcept {
  return {region->lkey, region->rkey, region};
}

}  // namespace

unsigned access_flags(memory::Access access) noexcept {
  using memory::Access;
  unsigned flags = 0;
  if (includes(access, Access::local_write)) flags |= IBV_ACCESS_LOCAL_WRITE;
  if (includes(access, Access::remote_read)) flags |= IBV_ACCESS_REMOTE_READ;
  if (includes(access, Access::remote_write)) flags |= IBV_ACCESS_REMOTE_WRITE;
  if (includes(access, Access::remote_atomic)) flags |= IBV_ACCESS_REMOTE_ATOMIC;
  return flags;
}

ProtectionDomain::ProtectionDomain(const DeviceContext& device)
    : native_(
          check_pointer(ibv_alloc_pd(device.get()), "make a protection domain on " + device.name()),
          "a protection domain") {}

ProtectionDomain ProtectionDomain::import(ibv_pd* native) {
  if (native == nullptr) {
    throw core::Error(core::ErrorCode::invalid_value, "cannot import a null protection domain");
  }
  return ProtectionDomain(Native::borrow(native));
}

device::Support ProtectionDomain::supports_dma_buf() const {
  // Given an invalid descriptor, a device that registers dma-bufs fails with EBADF, any other
  // with another errno (EOPNOTSUPP).
  errno = 0;
  Handle<ibv_mr, ibv_dereg_mr> none(ibv_reg_dmabuf_mr(get(), 0, 4096, 0, -1, 0), "a region");
  const int errnum = errno;
  if (errnum == EBADF) return {true, {}};
  return {false, device_name() + " cannot register a dma-buf: " + core::describe_errno(errnum)};
}

memory::MemoryKey RdmaRegistrar::register_range(const memory::Range& range, memory::Access access) {
  const unsigned flags = access_flags(access);
  std::string refused;
  if (range.descriptor.kind == memory::DescriptorKind::dma_buf) {
    ibv_mr* const region = ibv_reg_dmabuf_mr(domain_, range.descriptor.offset, range.length,
                                             reinterpret_cast<std::uint64_t>(range.address),
                                             range.descriptor.fd, static_cast<int>(flags));
    if (region != nullptr) return key_of(region);
    refused = "by its dma-buf: " + core::describe_errno(errno) + "; ";
  }
  ibv_mr* const region = ibv_reg_mr(domain_, range.address, range.length, flags);
  const int errnum = errno;
  if (region != nullptr) {
    if (!refused.empty()) {
      core::log_debug("{} registers a range by its address, not {}", name(), refused);
    }
    return key_of(region);
  }
  if (range.location == memory::Location::device &&
      range.descriptor.kind == memory::DescriptorKind::none) {
    refused = "it has no dma-buf; ";
  }
  core::throw_errno(refused + "by its address", errnum);
}

void RdmaRegistrar::deregister(const memory::Range&, const memory::MemoryKey& key) noexcept {
  const int errnum = errno_of(ibv_dereg_mr(static_cast<ibv_mr*>(key.handle)));
  if (errnum != 0) {
    core::log_error("{} cannot deregister a range: {}", name(), core::describe_errno(errnum));
  }
}

}  // namespace offload::rdma
