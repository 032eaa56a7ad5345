#include "rdma/verbs/gpu_reach.hpp"

#include "core/log.hpp"

namespace offload::rdma {

std::string GpuReach::describe() const {
  switch (way) {
    case Reach::dma_buf: return "by its dma-buf";
    case Reach::address: return "by its address, because " + why;
    case Reach::none: break;
  }
  return "not at all, because " + why + ": pinned host memory is used instead";
}

GpuReach reach_of(const ProtectionDomain& domain, const memory::Range& range) {
  using Region = Handle<ibv_mr, ibv_dereg_mr>;
  constexpr int kFlags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
  std::string why = "it has no dma-buf";
  if (range.descriptor.kind == memory::DescriptorKind::dma_buf) {
    const Region region(ibv_reg_dmabuf_mr(domain.get(), range.descriptor.offset, range.length,
                                          reinterpret_cast<std::uint64_t>(range.address),
                                          range.descriptor.fd, kFlags),
                        "a region of a GPU");
    if (region.get() != nullptr) return {Reach::dma_buf, {}};
    why = "the device refused its dma-buf (" + core::describe_errno(errno) + ")";
  }
  const Region region(ibv_reg_mr(domain.get(), range.address, range.length, kFlags),
                      "a region of a GPU");
  if (region.get() != nullptr) return {Reach::address, why};
  return {Reach::none, why + " and it refused its address (" + core::describe_errno(errno) + ")"};
}

memory::Range choose_range(const ProtectionDomain& domain,
                           const std::function<memory::Range()>& of_gpu,
                           const std::function<memory::Range()>& of_host) {
  GpuReach found;
  memory::Range range;
  try {
    range = of_gpu();
    found = reach_of(domain, range);
  } catch (const core::Error& error) {
    found.why = error.what();
  }
  core::log_info("{} accesses GPU memory {}", domain.device_name(), found.describe());
  if (found.way == Reach::none) return of_host();
  if (found.way == Reach::address) range.descriptor = {};  // which was refused
  return range;
}

}  // namespace offload::rdma
