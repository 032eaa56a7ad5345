#include "kernels/module/service_interface.hpp"

using offload::kernels::ServiceInterface;

extern "C" const ServiceInterface* offload_service();

// Another version has other members behind the first two.
extern "C" __attribute__((visibility("default"))) const ServiceInterface* offload_service() {
  static ServiceInterface other{};
  other.size = 2 * sizeof other.size;
  other.version = 4711;
  return &other;
}
