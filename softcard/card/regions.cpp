#include "softcard/card/regions.hpp"

namespace offload::rdma::model {

const Region* Regions::find(std::uint32_t key, std::uint32_t domain) const {
  const auto found = regions_.find(key);
  return found != regions_.end() && found->second.domain == domain ? &found->second : nullptr;
}

std::span<std::byte> Regions::part(const Region* region, std::uint64_t address,
                                   std::uint64_t length) {
  if (region == nullptr || address < region->address || length > region->bytes.size() ||
      address - region->address > region->bytes.size() - length) {
    return {};
  }
  return region->bytes.subspan(address - region->address, length);
}

}  // namespace offload::rdma::model
