#include "kernels/module/service_module.hpp"
#include "kernels/services/reverse.hpp"

/// The service that is built in, as a module: what it is to be one (bench/services.py pairs).
struct ReverseModule : offload::kernels::Reverse {
  static constexpr const char* kName = "reverse-module";
};

OFFLOAD_SERVICE_MODULE(ReverseModule);
