// The same in the form for CUDA before 12.4, a vector of four words.
#define OFFLOAD_VECTOR_PACKETS 1
#define PACKET_STRESS_SUITE PacketStressOfVectors
#include "tests/kernels/bodies/packet_stress.cuh"
