#include "kernels/module/service_module.hpp"
#include "kernels/services/echo.hpp"

namespace {

struct SecondCrc : offload::kernels::Echo {
  static constexpr const char* kName = "crc32c";
};

}  // namespace

OFFLOAD_SERVICE_MODULE(SecondCrc);
