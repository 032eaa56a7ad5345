/// The archive needs a member.
extern const char offload_doca_gpunetio_device[];
const char offload_doca_gpunetio_device[] = "The functions for kernels are in the headers.";
