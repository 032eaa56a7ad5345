/// The side of PCI that a program is built for: DOCA_ARCH_DPU or DOCA_ARCH_HOST. A program chooses
/// by -DDOCA_ARCH_DPU; otherwise it is the DPU for aarch64 and the host for all others.
#ifndef DOCA_BUILD_CONFIG_H_
#define DOCA_BUILD_CONFIG_H_

#if !defined(DOCA_ARCH_DPU) && !defined(DOCA_ARCH_HOST)
#ifdef __aarch64__
#define DOCA_ARCH_DPU 1
#else
#define DOCA_ARCH_HOST 1
#endif
#endif

#endif
