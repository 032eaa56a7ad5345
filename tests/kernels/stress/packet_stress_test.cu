// Packets written and read as fast as both sides can, as this toolkit accesses them.
#define PACKET_STRESS_SUITE PacketStress
#include "tests/kernels/bodies/packet_stress.cuh"
