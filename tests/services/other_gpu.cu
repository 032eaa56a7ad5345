#include "kernels/module/service_module.hpp"
#include "kernels/services/echo.hpp"

namespace {

struct OtherGpu : offload::kernels::Echo {
  static constexpr const char* kName = "other_gpu";
};

}  // namespace

OFFLOAD_SERVICE_MODULE(OtherGpu);
