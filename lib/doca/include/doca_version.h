/// The version of DOCA's interface that the headers follow.
#ifndef DOCA_VERSION_H_
#define DOCA_VERSION_H_

#define DOCA_VERSION_STRING "3.3.0"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/// Returns the version that the program was compiled with.
static inline const char *doca_version(void) {
  return DOCA_VERSION_STRING;
}

/// Returns the version of the loaded library, with that of the suite: "3.3.0 (dpu-gpu-offload 0.1.0)".
const char *doca_version_runtime(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
