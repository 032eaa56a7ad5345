#include "device/device.hpp"

namespace offload::device {

DeviceList list_gpus() {
  return {{}, "this build has no CUDA"};
}

Support gpu_supports(const Device&, Capability) {
  return {false, "this build has no CUDA"};
}

}  // namespace offload::device
