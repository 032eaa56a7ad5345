#include "kernels/module/service_interface.hpp"

using offload::kernels::ServiceInterface;

extern "C" const ServiceInterface* offload_service();

// Its headers have this version, and fewer members than the worker calls.
extern "C" __attribute__((visibility("default"))) const ServiceInterface* offload_service() {
  static ServiceInterface other{};
  other.size = sizeof other - sizeof other.respond;
  other.version = offload::kernels::kServiceInterface;
  other.name = "other";
  return &other;
}
