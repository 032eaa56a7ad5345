/// Log lines of programs, and of this library (its "SDK" lines), with a level each.
///
/// A backend is a place that lines are written to. A line of a program is written to all backends
/// of programs whose limits include its level, if the global lower limit includes it; a line of the
/// library goes to SDK backends in the same way. All calls may come from any thread.
#ifndef DOCA_LOG_H_
#define DOCA_LOG_H_

#include <stdint.h>
#include <stdio.h>
#include <string.h>  // for programs, which rely on it

#include "doca_error.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

enum doca_log_level {
  DOCA_LOG_LEVEL_DISABLE = 10,
  DOCA_LOG_LEVEL_CRIT = 20,
  DOCA_LOG_LEVEL_ERROR = 30,
  DOCA_LOG_LEVEL_WARNING = 40,
  DOCA_LOG_LEVEL_INFO = 50,
  DOCA_LOG_LEVEL_DEBUG = 60,
  DOCA_LOG_LEVEL_TRACE = 70
};

struct doca_log_backend;

/// Creates the backends for programs that most of them want: standard output for info, debug and
/// trace, standard error for warnings and worse. DOCA_ERROR_ALREADY_EXIST if they exist.
doca_error_t doca_log_backend_create_standard(void);
/// Creates a backend that writes lines of the program to `file`, which must stay open.
/// DOCA_ERROR_INVALID_VALUE if an argument is NULL. This and all other backends exist until the
/// program ends.
doca_error_t doca_log_backend_create_with_file(FILE *file, struct doca_log_backend **backend);
/// Does the same for lines of the library.
doca_error_t doca_log_backend_create_with_file_sdk(FILE *file, struct doca_log_backend **backend);
/// Creates a backend that writes lines of the program to a file descriptor, which must stay open.
/// DOCA_ERROR_INVALID_VALUE for a negative one, or if `backend` is NULL.
doca_error_t doca_log_backend_create_with_fd(int fd, struct doca_log_backend **backend);
/// Does the same for lines of the library.
doca_error_t doca_log_backend_create_with_fd_sdk(int fd, struct doca_log_backend **backend);

/// Lines of levels above `level` are not written to `backend`. DOCA_ERROR_INVALID_VALUE if it is
/// NULL or no level, DOCA_ERROR_NOT_PERMITTED for a backend of the library's lines.
doca_error_t doca_log_backend_set_level_lower_limit(struct doca_log_backend *backend, uint32_t level);
/// Lines of levels below `level`, which are more severe, are not written to `backend`. Errors as
/// above.
doca_error_t doca_log_backend_set_level_upper_limit(struct doca_log_backend *backend, uint32_t level);
/// The same as the lower limit, for a backend of the library's lines. DOCA_ERROR_NOT_PERMITTED for
/// a backend of the program's.
doca_error_t doca_log_backend_set_sdk_level(struct doca_log_backend *backend, uint32_t level);

/// Lines of the program of levels above `level` are not written to any backend; info by default.
/// DOCA_ERROR_INVALID_VALUE if it is no level.
doca_error_t doca_log_level_set_global_lower_limit(uint32_t level);
uint32_t doca_log_level_get_global_lower_limit(void);
/// Sets the level of all backends of the library's lines, and of those that are created later; info
/// by default. DOCA_ERROR_INVALID_VALUE if it is no level.
doca_error_t doca_log_level_set_global_sdk_limit(uint32_t level);
uint32_t doca_log_level_get_global_sdk_limit(void);

/// Registers a name for lines, and writes its number to `source`. The name must stay valid.
/// DOCA_ERROR_INVALID_VALUE if an argument is NULL.
doca_error_t doca_log_register_source(const char *name, int *source);
/// Writes a line of the program. The macros below call it.
void doca_log(uint32_t level, int source, int line, const char *function, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/// Registers the source of all lines of the file; once, at file scope.
#define DOCA_LOG_REGISTER(SOURCE)                                                               \
  static int doca_log_source_of_file;                                                           \
  static void __attribute__((constructor(65535))) doca_log_register_file(void) {                \
    (void)doca_log_register_source(#SOURCE, &doca_log_source_of_file);                          \
  }                                                                                             \
  struct doca_log_backend /* takes the semicolon */

#define DOCA_LOG(level, ...) \
  doca_log((level), doca_log_source_of_file, __LINE__, __func__, __VA_ARGS__)
#define DOCA_LOG_CRIT(...) DOCA_LOG(DOCA_LOG_LEVEL_CRIT, __VA_ARGS__)
#define DOCA_LOG_ERR(...) DOCA_LOG(DOCA_LOG_LEVEL_ERROR, __VA_ARGS__)
#define DOCA_LOG_WARN(...) DOCA_LOG(DOCA_LOG_LEVEL_WARNING, __VA_ARGS__)
#define DOCA_LOG_INFO(...) DOCA_LOG(DOCA_LOG_LEVEL_INFO, __VA_ARGS__)
#define DOCA_LOG_DBG(...) DOCA_LOG(DOCA_LOG_LEVEL_DEBUG, __VA_ARGS__)
#define DOCA_LOG_TRC(...) DOCA_LOG(DOCA_LOG_LEVEL_TRACE, __VA_ARGS__)

/// Lines of data paths, compiled only where DOCA_LOGGING_ALLOW_DLOG is defined.
#ifdef DOCA_LOGGING_ALLOW_DLOG
#define DOCA_DLOG(level, ...) DOCA_LOG(level, __VA_ARGS__)
#else
#define DOCA_DLOG(level, ...)                   \
  do {                                          \
    if (0) DOCA_LOG(level, __VA_ARGS__);        \
  } while (0)
#endif
#define DOCA_DLOG_CRIT(...) DOCA_DLOG(DOCA_LOG_LEVEL_CRIT, __VA_ARGS__)
#define DOCA_DLOG_ERR(...) DOCA_DLOG(DOCA_LOG_LEVEL_ERROR, __VA_ARGS__)
#define DOCA_DLOG_WARN(...) DOCA_DLOG(DOCA_LOG_LEVEL_WARNING, __VA_ARGS__)
#define DOCA_DLOG_INFO(...) DOCA_DLOG(DOCA_LOG_LEVEL_INFO, __VA_ARGS__)
#define DOCA_DLOG_DBG(...) DOCA_DLOG(DOCA_LOG_LEVEL_DEBUG, __VA_ARGS__)
#define DOCA_DLOG_TRC(...) DOCA_DLOG(DOCA_LOG_LEVEL_TRACE, __VA_ARGS__)

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
