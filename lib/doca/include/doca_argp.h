/// Command line options of a program, with a help text, log levels and a JSON file of options.
///
/// Its life: doca_argp_init(), create and register each parameter, doca_argp_start(), which calls
/// the callback of each option given, doca_argp_destroy(). The options --help, --version,
/// --log-level, --sdk-log-level and --json exist for each program. One thread.
///
/// A name is given with one or two dashes; a value is the next argument, or follows "=". A JSON
/// file has an object "doca_program_flags" with long names of the program's options, and an object
/// "doca_general_flags" with "log-level" and "sdk-log-level".
#ifndef DOCA_ARGP_H_
#define DOCA_ARGP_H_

#include <stdbool.h>
#include <stdint.h>

#include "doca_error.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

enum doca_argp_type {
  DOCA_ARGP_TYPE_UNKNOWN = 0,
  DOCA_ARGP_TYPE_STRING = 1,  ///< the callback gets a char *
  DOCA_ARGP_TYPE_INT = 2,     ///< the callback gets an int *
  DOCA_ARGP_TYPE_BOOLEAN = 3  ///< takes no value; the callback gets a bool * that is true
};

struct doca_argp_param;

/// Called with the value of an option, and what doca_argp_init() was given. Anything but
/// DOCA_SUCCESS ends doca_argp_start() with that error.
typedef doca_error_t (*doca_argp_param_cb_t)(void *value, void *config);
/// Called when all options were handled.
typedef doca_error_t (*doca_argp_validation_cb_t)(void *config);

/// Begins. `program_name`: for the help; NULL: the name by which the
/// program was called.
/// DOCA_ERROR_BAD_STATE if it has begun already.
doca_error_t doca_argp_init(const char *program_name, void *program_config);
/// Reads the options and calls their callbacks. Prints the help and exits for --help; prints the
/// version and exits for --version. DOCA_ERROR_INVALID_VALUE for an unknown option, a missing or
/// invalid value, a missing mandatory option or a repeated one that may not be repeated; the
/// reason is written to standard error. DOCA_ERROR_BAD_STATE before doca_argp_init().
doca_error_t doca_argp_start(int argc, char **argv);
/// Ends, and frees the parameters. DOCA_ERROR_BAD_STATE before doca_argp_init().
doca_error_t doca_argp_destroy(void);
/// Prints the help.
void doca_argp_usage(void);

/// Creates a parameter, which doca_argp_register_param() takes over.
/// DOCA_ERROR_INVALID_VALUE if `param` is NULL.
doca_error_t doca_argp_param_create(struct doca_argp_param **param);
/// Frees a parameter that was not registered. DOCA_ERROR_INVALID_VALUE if it is NULL,
/// DOCA_ERROR_BAD_STATE if it was registered.
doca_error_t doca_argp_param_destroy(struct doca_argp_param *param);
/// The texts must stay valid. Each of these calls does nothing if `param` is NULL.
void doca_argp_param_set_short_name(struct doca_argp_param *param, const char *name);
void doca_argp_param_set_long_name(struct doca_argp_param *param, const char *name);
/// The text for the value in the help: "<path>".
void doca_argp_param_set_arguments(struct doca_argp_param *param, const char *arguments);
void doca_argp_param_set_description(struct doca_argp_param *param, const char *description);
void doca_argp_param_set_callback(struct doca_argp_param *param, doca_argp_param_cb_t callback);
void doca_argp_param_set_type(struct doca_argp_param *param, enum doca_argp_type type);
/// The option must be given.
void doca_argp_param_set_mandatory(struct doca_argp_param *param);
/// The option may be given several times.
void doca_argp_param_set_multiplicity(struct doca_argp_param *param);
/// Adds the parameter and takes it over, also on failure. DOCA_ERROR_INVALID_VALUE if it is NULL,
/// DOCA_ERROR_INITIALIZATION if it lacks a name, a description, a callback or a type,
/// DOCA_ERROR_BAD_STATE if it was registered already, if another option has its name, and before
/// doca_argp_init().
doca_error_t doca_argp_register_param(struct doca_argp_param *param);
/// Replaces what --version does. DOCA_ERROR_INVALID_VALUE if `callback` is NULL,
/// DOCA_ERROR_BAD_STATE before doca_argp_init().
doca_error_t doca_argp_register_version_callback(doca_argp_param_cb_t callback);
/// Adds a check of the whole configuration. Errors as above.
doca_error_t doca_argp_register_validation_callback(doca_argp_validation_cb_t callback);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
