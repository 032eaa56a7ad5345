#include "apps/rdma_tasks/device/rings.hpp"

namespace offload::rdma_tool {

std::unique_ptr<LaneRings> make_card_rings(const LaneRingParts&) {
  throw core::Error(core::ErrorCode::not_supported, "this build has no libmlx5");
}

}  // namespace offload::rdma_tool
