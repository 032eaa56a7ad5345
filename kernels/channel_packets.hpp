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

#if defined(__CUDACC__)
#define OFFLOAD_CUDA_VERSION (__CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__)
// A test defines it, to run the form for older toolkits on today's GPUs.
#if !defined(OFFLOAD_VECTOR_PACKETS) && OFFLOAD_CUDA_VERSION < 1204
#define OFFLOAD_VECTOR_PACKETS 1
#endif
#endif

/// Access to packets: who sees a flag sees the data that was stored with it.
///
/// - A CPU loads two halves, the one with the flag first and with acquire. So the data is no older
///   than the flag even if a store comes in two halves, as on an emulator (QEMU before 8.1). The
///   slot is not written again before its reader is done, so the halves agree.
/// - x86-64 stores by one aligned 16-byte SSE access, for GPUs that read it. Intel and AMD promise
///   that it is atomic on every processor with AVX (Intel SDM vol. 3A, 9.1.1 "Guaranteed Atomic
///   Operations"; AMD APM vol. 2, 7.3.2 "Access Atomicity"). The processors' order, TSO, makes it a
///   release.
/// - Other CPUs store two halves, the one with the flag last and with release.
/// - GPU, CUDA 12.4 and later: ld and st .relaxed.sys.b128, one scalar access to PTX (type .b128
///   since PTX ISA 8.3, with scope .sys since 8.4; sm_70).
/// - GPU, CUDA before 12.4: ld and st .volatile.v4.u32, which is relaxed.sys. To PTX a vector
///   access is four scalar ones in unspecified order ("Memory Consistency Model", "Vector
///   Data-types"). It is relied on that the hardware makes one transaction of 16 aligned bytes;
///   NCCL's LL128 relies on 128 bytes of a warp. scripts/checks/sass sees that it is one
///   instruction, tests/kernels/stress/packet_stress_test.cu that no packet is torn
///   (docs/evidence/hardware.md).
///
/// On a GPU all are relaxed. Data outside the packet itself (a plain payload) needs the two
/// functions at the end.
namespace offload::kernels {

#if defined(__CUDA_ARCH__)

__device__ inline Packet from_halves(std::uint64_t low, std::uint64_t high) {
  return {{static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(low >> 32),
           static_cast<std::uint32_t>(high)},
          static_cast<std::uint32_t>(high >> 32)};
}

/// Relaxed, system scope; pairs with store_packet of the other side.
__device__ inline Packet load_packet(const Packet* from) {
  const auto address = __cvta_generic_to_global(from);
#if !defined(OFFLOAD_VECTOR_PACKETS)
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

/// Relaxed, system scope; pairs with load_packet of the other side.
__device__ inline void store_packet(Packet* to, Packet packet) {
  const auto address = __cvta_generic_to_global(to);
#if !defined(OFFLOAD_VECTOR_PACKETS)
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

#else

inline Packet load_packet(const Packet* from) {
  const auto* half = reinterpret_cast<const std::uint64_t*>(from);
  const std::uint64_t high = __atomic_load_n(half + 1, __ATOMIC_ACQUIRE);
  const std::uint64_t halves[2] = {__atomic_load_n(half, __ATOMIC_RELAXED), high};
  Packet packet;
  std::memcpy(&packet, halves, sizeof packet);
  return packet;
}

#if defined(OFFLOAD_PORTABLE_PACKETS)

inline void store_packet(Packet* to, Packet packet) {
  auto* half = reinterpret_cast<std::uint64_t*>(to);
  std::uint64_t halves[2];
  std::memcpy(halves, &packet, sizeof packet);
  __atomic_store_n(half, halves[0], __ATOMIC_RELAXED);
  __atomic_store_n(half + 1, halves[1], __ATOMIC_RELEASE);
}

#else

/// Assembly, because an intrinsic may be split, repeated or moved by the compiler.
inline void store_packet_bits(Packet* to, __m128i bits) {
  asm volatile("movdqa %1, %0" : "=m"(*to) : "x"(bits) : "memory");
}

inline void store_packet(Packet* to, Packet packet) {
  store_packet_bits(to, _mm_load_si128(reinterpret_cast<const __m128i*>(&packet)));
}

/// In one access: for packets whose header is there already.
inline __m128i load_packet_bits(const Packet* from) {
  __m128i bits;
  asm volatile("movdqa %1, %0" : "=x"(bits) : "m"(*from) : "memory");
  return bits;
}

#endif
#endif

/// Orders the reads of a plain payload behind the load of its header. Called by the lane that
/// loaded the header, after it saw the flag and before the group is synchronised. Pairs with the
/// server's store of the header, which releases. On a CPU the header's load acquires already.
///
/// The load that saw the flag is relaxed: an acquiring poll costs 1.5 us more. On a GPU this makes
/// it one half of an acquire pattern (PTX ISA, "Release and Acquire Patterns"):
///
/// - sm_90, CUDA 12.8 and later: fence.acquire (PTX ISA 8.6).
/// - Otherwise: the header is loaded once more, to acquire. That load cannot see an older header
///   than the first saw ("SC-per-Location"; both are 16 bytes wide, so they overlap completely),
///   and the server writes no newer one before the response: so it sees the release, and what it
///   orders does not depend on what is done with its value.
///
/// ptxas makes the same of both: it drops the second load and invalidates the L1 cache
/// (CCTL.IVALL). That takes no round trip and does not wait for reads under way; fence.acq_rel
/// does. scripts/checks/sass sees, for each architecture built, that the invalidation is there.
OFFLOAD_HOST_DEVICE inline void acquire_plain_payload([[maybe_unused]] const Packet* header) {
#if defined(__CUDA_ARCH__)
#if __CUDA_ARCH__ >= 900 && OFFLOAD_CUDA_VERSION >= 1208
  asm volatile("fence.acquire.sys;" ::: "memory");
#elif !defined(OFFLOAD_VECTOR_PACKETS)
  asm volatile("{ .reg .b128 v; ld.acquire.sys.global.b128 v, [%0]; }" ::"l"(
                   __cvta_generic_to_global(header))
               : "memory");
#else
  asm volatile("{ .reg .u32 v; ld.acquire.sys.global.u32 v, [%0]; }" ::"l"(
                   __cvta_generic_to_global(&header->flag))
               : "memory");
#endif
#endif
}

/// Orders the writes of a plain payload before the store of its header, which together release
/// them; pairs with the server's load of the header, which acquires. Called by the lane that writes
/// the header, with the group synchronised. On a CPU the header's store releases already. On a GPU
/// it waits for every access of the processor that is under way, polls of other warps among them.
OFFLOAD_HOST_DEVICE inline void release_plain_payload() {
#if defined(__CUDA_ARCH__)
#if __CUDA_ARCH__ >= 900 && OFFLOAD_CUDA_VERSION >= 1208
  asm volatile("fence.release.sys;" ::: "memory");
#else
  asm volatile("fence.acq_rel.sys;" ::: "memory");
#endif
#endif
}

}  // namespace offload::kernels
