#include "memory/region_blob.hpp"
#include "tests/fuzz/enveloped.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace offload;
  fuzz::run_enveloped<memory::RegionBlob>(memory::kRegionEnvelope, {data, size});
  return 0;
}
