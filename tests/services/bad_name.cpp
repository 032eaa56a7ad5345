#include "kernels/module/service_module.hpp"
#include "kernels/services/echo.hpp"

namespace {

struct Unspeakable : offload::kernels::Echo {
  static constexpr const char* kName = "Echo, but louder";
};

}  // namespace

OFFLOAD_SERVICE_MODULE(Unspeakable);
