#include "apps/samples/card_kind.hpp"
#include "core/error.hpp"

namespace offload::samples {

std::unique_ptr<SampleCard::Kind> make_real_kind(const std::string&) {
  throw core::Error(core::ErrorCode::not_supported, "this build has no libmlx5");
}

}  // namespace offload::samples
