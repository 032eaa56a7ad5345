#include "kernels/module/service_interface.hpp"

// A module that has nothing to offer.
extern "C" const offload::kernels::ServiceInterface* offload_service();

extern "C" __attribute__((visibility("default"))) const offload::kernels::ServiceInterface*
offload_service() {
  return nullptr;
}
