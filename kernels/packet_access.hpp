#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/channel_layout.hpp"

#if !defined(__CUDA_ARCH__) && defined(__x86_64__)
#include <emmintrin.h>
#endif

// ThreadSanitizer knows atomics of up to 8 bytes: under it, the portable form below runs.
#if defined(__SANITIZE_THREAD__)
#define OFFLOAD_PORTABLE_PACKETS 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define OFFLOAD_PORTABLE_PACKETS 1
#endif
#endif
#if !defined(__x86_64__) && !defined(OFFLOAD_PORTABLE_PACKETS)
#define OFFLOAD_PORTABLE_PACKETS 1
#endif

/// How a packet is read and written so that its data and flag are never seen apart.
///
/// - x86-64: aligned 16-byte SSE accesses, which Intel and AMD guarantee to be atomic on every
///   processor with AVX; TSO orders them, so a load acquires and a store releases.
/// - Elsewhere on a CPU: the half with the flag is written last with release and read first with
///   acquire; the slot is not written again before its reader is done, so the halves agree.
/// - GPU: one 128-bit access, relaxed at system scope. What is not in the packet itself, a plain
///   payload, takes the two functions below.
namespace offload::kernels {

#if defined(__CUDA_ARCH__)

__device__ inline Packet from_halves(std::uint64_t low, std::uint64_t high) {
  return {{static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(low >> 32),
           static_cast<std::uint32_t>(high)},
          static_cast<std::uint32_t>(high >> 32)};
}

__device__ inline Packet load_packet(const Packet* from) {
  const auto address = __cvta_generic_to_global(from);
#if __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1203
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  asm volatile("{ .reg .b128 v; ld.relaxed.sys.global.b128 v, [%2]; mov.b128 {%0, %1}, v; }"
               : "=l"(low), "=l"(high)
               : "l"(address)
               : "memory");
  return from_halves(low, high);
#else
  Packet packet;
  asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(packet.data[0]), "=r"(packet.data[1]), "=r"(packet.data[2]), "=r"(packet.flag)
               : "l"(address)
               : "memory");
  return packet;
#endif
}

__device__ inline void store_packet(Packet* to, Packet packet) {
  const auto address = __cvta_generic_to_global(to);
#if __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1203
  const std::uint64_t low = packet.data[0] | (static_cast<std::uint64_t>(packet.data[1]) << 32);
  const std::uint64_t high = packet.data[2] | (static_cast<std::uint64_t>(packet.flag) << 32);
  asm volatile(
      "{ .reg .b128 v; mov.b128 v, {%1, %2}; st.relaxed.sys.global.b128 [%0], v; }" ::"l"(address),
      "l"(low), "l"(high)
      : "memory");
#else
  asm volatile("st.volatile.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(address),
               "r"(packet.data[0]), "r"(packet.data[1]), "r"(packet.data[2]), "r"(packet.flag)
               : "memory");
#endif
}

#elif defined(OFFLOAD_PORTABLE_PACKETS)

inline Packet load_packet(const Packet* from) {
  const auto* half = reinterpret_cast<const std::uint64_t*>(from);
  const std::uint64_t halves[2] = {0, __atomic_load_n(half + 1, __ATOMIC_ACQUIRE)};
  Packet packet;
  std::memcpy(&packet, halves, sizeof packet);
  const std::uint64_t low = __atomic_load_n(half, __ATOMIC_RELAXED);
  std::memcpy(&packet, &low, sizeof low);
  return packet;
}

inline void store_packet(Packet* to, Packet packet) {
  auto* half = reinterpret_cast<std::uint64_t*>(to);
  std::uint64_t halves[2];
  std::memcpy(halves, &packet, sizeof packet);
  __atomic_store_n(half, halves[0], __ATOMIC_RELAXED);
  __atomic_store_n(half + 1, halves[1], __ATOMIC_RELEASE);
}

#else

/// Assembly, because an intrinsic may be split, repeated or moved by the compiler.
inline __m128i load_packet_bits(const Packet* from) {
  __m128i bits;
  asm volatile("movdqa %1, %0" : "=x"(bits) : "m"(*from) : "memory");
  return bits;
}

inline void store_packet_bits(Packet* to, __m128i bits) {
  asm volatile("movdqa %1, %0" : "=m"(*to) : "x"(bits) : "memory");
}

inline Packet load_packet(const Packet* from) {
  Packet packet;
  _mm_store_si128(reinterpret_cast<__m128i*>(&packet), load_packet_bits(from));
  return packet;
}

inline void store_packet(Packet* to, Packet packet) {
  store_packet_bits(to, _mm_load_si128(reinterpret_cast<const __m128i*>(&packet)));
}

#endif

/// After a header was seen, by the lane that read it, and before the group is synchronised and
/// reads its plain payload. On a CPU the header's load acquires already. On a GPU its flag is
/// loaded once more, to acquire: a fence would wait for every read under way, other groups' polls
/// among them. Nothing looks at that load, and ptxas 13.0 leaves of it what orders (sm_75 to
/// sm_90): the L1 cache is invalidated, as behind every load that acquires, and the load that has
/// seen the flag has come back before. That is enough for these processors; PTX as such promises it
/// only for a load whose value is used, which takes another round trip.
OFFLOAD_HOST_DEVICE inline void acquire_plain_payload([[maybe_unused]] const Packet* header) {
#if defined(__CUDA_ARCH__)
  asm volatile("{ .reg .u32 flag; ld.acquire.sys.global.u32 flag, [%0]; }" ::"l"(
                   __cvta_generic_to_global(&header->flag))
               : "memory");
#endif
}

/// After a plain payload was written and before its header is, by the lane that writes the header,
/// with the group synchronised. On a CPU the header's store releases already.
OFFLOAD_HOST_DEVICE inline void release_plain_payload() {
#if defined(__CUDA_ARCH__)
  asm volatile("fence.acq_rel.sys;" ::: "memory");  // __threadfence_system orders more than needed
#endif
}

}  // namespace offload::kernels
