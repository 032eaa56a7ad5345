/// Returns where the functions for kernels are. Tools that check packages want code in an archive.
extern "C" const char* offload_doca_gpunetio_device();
extern "C" const char* offload_doca_gpunetio_device() {
  return "The functions for kernels are in the headers.";
}
