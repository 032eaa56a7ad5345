#pragma once

#include <vector>

#include "kernels/module/service_interface.hpp"

namespace offload::kernels {

/// The services of services.hpp, the default first; for GPUs too in a build with CUDA.
const std::vector<const ServiceInterface*>& built_in_services();

}  // namespace offload::kernels
