// A module that has nothing to offer.
extern "C" const void* offload_service();

extern "C" __attribute__((visibility("default"))) const void* offload_service() {
  return nullptr;
}
