#pragma once

/// Static probes (SDT) of the control path: a tracer such as bpftrace or perf stops at them by
/// their name, `usdt:PROGRAM:offload:NAME`; where none looks each is one no-op instruction. Without
/// the header of systemtap, at build time, they are nothing.
#if __has_include(<sys/sdt.h>)
#include <sys/sdt.h>
#define OFFLOAD_PROBE1(name, first) DTRACE_PROBE1(offload, name, first)
#define OFFLOAD_PROBE2(name, first, second) DTRACE_PROBE2(offload, name, first, second)
#else
#define OFFLOAD_PROBE1(name, first) static_cast<void>(first)
#define OFFLOAD_PROBE2(name, first, second) \
  static_cast<void>(first);                 \
  static_cast<void>(second)
#endif
