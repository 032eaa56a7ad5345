#include "doca/argp/argp.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "core/log.hpp"
#include "core/units.hpp"
#include "doca/guard.hpp"
#include "doca/include/doca_log.h"
#include "doca/include/doca_version.h"

namespace offload::doca {
namespace {

using core::Error;
using core::ErrorCode;
using Params = std::vector<std::unique_ptr<doca_argp_param>>;

/// The options of the program, between doca_argp_init() and doca_argp_destroy().
struct ArgpState {
  std::string program;
  void* config = nullptr;
  Params general;
  Params params;
  doca_argp_param_cb_t version = nullptr;
  std::vector<doca_argp_validation_cb_t> validations;
  std::optional<doca_error_t> refused;  ///< what a callback returned
};

std::unique_ptr<ArgpState>& state() {
  static std::unique_ptr<ArgpState> only;
  return only;
}

[[noreturn]] void refuse(const std::string& why) {
  throw Error(ErrorCode::invalid_value, why);
}

doca_argp_param* find(const Params& params, std::string_view name) {
  const auto found = std::find_if(params.begin(), params.end(), [&](const auto& param) {
    return !name.empty() && (param->short_name == name || param->long_name == name);
  });
  return found != params.end() ? found->get() : nullptr;
}

bool is_registered(const doca_argp_param& param) {
  return std::any_of(state()->params.begin(), state()->params.end(),
                     [&](const auto& each) { return each.get() == &param; });
}

bool is_taken(const doca_argp_param& added) {
  for (const Params* params : {&state()->general, &state()->params}) {
    if (find(*params, added.short_name) != nullptr || find(*params, added.long_name) != nullptr) {
      return true;
    }
  }
  return false;
}

int number_of(const doca_argp_param& param, const std::string& text) {
  const auto value = core::parse_number<int>(text);
  if (!value) {
    refuse("invalid value '" + text + "' of --" + param.long_name + "; it takes an integer");
  }
  return *value;
}

/// Calls the callback of an option. Throws Error.
void handle(doca_argp_param& param, std::string value) {
  if (std::exchange(param.was_given, true) && !param.may_repeat) {
    refuse("--" + param.long_name + " was given twice");
  }
  doca_error_t result = DOCA_SUCCESS;
  if (param.type == DOCA_ARGP_TYPE_INT) {
    int number = number_of(param, value);
    result = param.callback(&number, state()->config);
  } else if (param.type == DOCA_ARGP_TYPE_BOOLEAN) {
    bool is_set = true;
    result = param.callback(&is_set, state()->config);
  } else {
    result = param.callback(value.data(), state()->config);
  }
  if (result == DOCA_SUCCESS) return;
  state()->refused = result;
  refuse("the program refused the value of --" + param.long_name);
}

void read_file(const std::string& path) {
  for (JsonFlag& flag : read_json_flags(path)) {
    doca_argp_param* const param =
        find(flag.is_general ? state()->general : state()->params, flag.name);
    if (param == nullptr) refuse(path + " has the unknown option '" + flag.name + "'");
    handle(*param, std::move(flag.value));
  }
}

// ---- The options that each program has

doca_error_t print_help(void* /*value*/, void* /*config*/) {
  doca_argp_usage();
  std::exit(EXIT_SUCCESS);
}

doca_error_t print_version(void* value, void* config) {
  if (state()->version != nullptr) return state()->version(value, config);
  std::printf("DOCA version %s\n", doca_version_runtime());
  std::exit(EXIT_SUCCESS);
}

doca_error_t set_log_level(void* value, void* /*config*/) {
  return doca_log_level_set_global_lower_limit(
      static_cast<std::uint32_t>(*static_cast<int*>(value)));
}

doca_error_t set_sdk_log_level(void* value, void* /*config*/) {
  return doca_log_level_set_global_sdk_limit(static_cast<std::uint32_t>(*static_cast<int*>(value)));
}

doca_error_t read_json(void* value, void* /*config*/) {
  read_file(static_cast<const char*>(value));
  return DOCA_SUCCESS;
}

Params general_params() {
#define OFFLOAD_DOCA_LEVELS \
  " 10=DISABLE, 20=CRITICAL, 30=ERROR, 40=WARNING, 50=INFO, 60=DEBUG, 70=TRACE"
  Params params;
  const auto add = [&](doca_argp_param param) {
    params.push_back(std::make_unique<doca_argp_param>(std::move(param)));
  };
  add({"h", "help", "", "Print this help and exit", print_help, DOCA_ARGP_TYPE_BOOLEAN});
  add({"v", "version", "", "Print the version and exit", print_version, DOCA_ARGP_TYPE_BOOLEAN});
  add({"l", "log-level", "<level>", "Log level of the program:" OFFLOAD_DOCA_LEVELS, set_log_level,
       DOCA_ARGP_TYPE_INT});
  add({"", "sdk-log-level", "<level>", "Log level of the library:" OFFLOAD_DOCA_LEVELS,
       set_sdk_log_level, DOCA_ARGP_TYPE_INT});
#undef OFFLOAD_DOCA_LEVELS
  add({"j", "json", "<path>", "Read options from a JSON file", read_json, DOCA_ARGP_TYPE_STRING});
  return params;
}

// ---- The command line

/// Handles the option at `at`. Returns the number of arguments that it took.
int handle_argument(int at, int argc, char** argv) {
  const std::string_view argument = argv[at];
  if (argument.size() < 2 || argument[0] != '-')
    refuse("unexpected argument '" + std::string(argument) + "'");
  std::string_view name = argument.substr(argument[1] == '-' ? 2 : 1);
  const std::size_t equals = name.find('=');
  std::optional<std::string> value;
  if (equals != std::string_view::npos) {
    value.emplace(name.substr(equals + 1));
    name = name.substr(0, equals);
  }
  doca_argp_param* param = find(state()->general, name);
  if (param == nullptr) param = find(state()->params, name);
  if (param == nullptr) refuse("unknown option '" + std::string(argument) + "'");
  if (param->type == DOCA_ARGP_TYPE_BOOLEAN) {
    if (value) refuse("--" + param->long_name + " takes no value");
    handle(*param, {});
    return 1;
  }
  if (value) {
    handle(*param, std::move(*value));
    return 1;
  }
  if (at + 1 == argc) refuse("'" + std::string(argument) + "' needs a value");
  handle(*param, argv[at + 1]);
  return 2;
}

void parse(int argc, char** argv) {
  if (state()->program.empty() && argc > 0) state()->program = argv[0];
  for (int at = 1; at < argc;) at += handle_argument(at, argc, argv);
  for (const auto& param : state()->params) {
    if (param->is_mandatory && !param->was_given) refuse("--" + param->long_name + " is required");
  }
  for (const doca_argp_validation_cb_t validate : state()->validations) {
    const doca_error_t result = validate(state()->config);
    if (result == DOCA_SUCCESS) continue;
    state()->refused = result;
    refuse("the program refused its configuration");
  }
}

void print_params(const char* title, const Params& params) {
  if (params.empty()) return;
  std::printf("\n%s:\n", title);
  for (const auto& param : params) {
    std::string names;
    if (!param->short_name.empty()) names = "-" + param->short_name + ", ";
    names += "--" + param->long_name;
    if (!param->arguments.empty()) names += " " + param->arguments;
    std::printf("  %-34s %s%s\n", names.c_str(), param->description.c_str(),
                param->is_mandatory ? " (required)" : "");
  }
}

/// Changes a member of a parameter; without memory it stays empty, which registering refuses.
void set_text(doca_argp_param* param, std::string doca_argp_param::*member,
              const char* text) noexcept {
  if (param == nullptr || text == nullptr) return;
  static_cast<void>(guarded("doca_argp_param_set", [&] { param->*member = text; }));
}

}  // namespace
}  // namespace offload::doca

using namespace offload::doca;  // NOLINT(google-build-using-namespace): the calls have no namespace

doca_error_t doca_argp_init(const char* program_name, void* program_config) {
  if (state()) return DOCA_ERROR_BAD_STATE;
  return guarded(__func__, [&] {
    auto made = std::make_unique<ArgpState>();
    if (program_name != nullptr) made->program = program_name;
    made->config = program_config;
    made->general = general_params();
    state() = std::move(made);
  });
}

doca_error_t doca_argp_start(int argc, char** argv) {
  if (!state()) return DOCA_ERROR_BAD_STATE;
  if (argc < 0 || (argc > 0 && argv == nullptr)) return DOCA_ERROR_INVALID_VALUE;
  state()->refused.reset();
  try {
    parse(argc, argv);
    return DOCA_SUCCESS;
  } catch (const offload::core::Error& error) {
    std::fprintf(stderr, "%s: %s\n", state()->program.c_str(), error.what());
    if (!state()->refused) std::fprintf(stderr, "Try --help for the options.\n");
    return state()->refused.value_or(to_doca(error.code()));
  } catch (...) {
    return handle_exception(__func__);
  }
}

doca_error_t doca_argp_destroy() {
  if (!state()) return DOCA_ERROR_BAD_STATE;
  state().reset();
  return DOCA_SUCCESS;
}

void doca_argp_usage() {
  if (!state()) return;
  std::printf("Usage: %s [DOCA Flags]%s\n", state()->program.c_str(),
              state()->params.empty() ? "" : " [Program Flags]");
  print_params("DOCA Flags", state()->general);
  print_params("Program Flags", state()->params);
  std::fflush(stdout);
}

doca_error_t doca_argp_param_create(doca_argp_param** param) {
  if (param == nullptr) return DOCA_ERROR_INVALID_VALUE;
  return guarded(__func__, [&] { *param = new doca_argp_param; });
}

doca_error_t doca_argp_param_destroy(doca_argp_param* param) {
  if (param == nullptr) return DOCA_ERROR_INVALID_VALUE;
  if (state() && is_registered(*param)) return DOCA_ERROR_BAD_STATE;
  delete param;
  return DOCA_SUCCESS;
}

void doca_argp_param_set_short_name(doca_argp_param* param, const char* name) {
  set_text(param, &doca_argp_param::short_name, name);
}

void doca_argp_param_set_long_name(doca_argp_param* param, const char* name) {
  set_text(param, &doca_argp_param::long_name, name);
}

void doca_argp_param_set_arguments(doca_argp_param* param, const char* arguments) {
  set_text(param, &doca_argp_param::arguments, arguments);
}

void doca_argp_param_set_description(doca_argp_param* param, const char* description) {
  set_text(param, &doca_argp_param::description, description);
}

void doca_argp_param_set_callback(doca_argp_param* param, doca_argp_param_cb_t callback) {
  if (param != nullptr) param->callback = callback;
}

void doca_argp_param_set_type(doca_argp_param* param, doca_argp_type type) {
  if (param != nullptr) param->type = type;
}

void doca_argp_param_set_mandatory(doca_argp_param* param) {
  if (param != nullptr) param->is_mandatory = true;
}

void doca_argp_param_set_multiplicity(doca_argp_param* param) {
  if (param != nullptr) param->may_repeat = true;
}

doca_error_t doca_argp_register_param(doca_argp_param* param) {
  if (param == nullptr) return DOCA_ERROR_INVALID_VALUE;
  if (state() && is_registered(*param)) return DOCA_ERROR_BAD_STATE;
  std::unique_ptr<doca_argp_param> owned(param);
  if (!state()) return DOCA_ERROR_BAD_STATE;
  if ((owned->short_name.empty() && owned->long_name.empty()) || owned->description.empty() ||
      owned->callback == nullptr || owned->type <= DOCA_ARGP_TYPE_UNKNOWN ||
      owned->type > DOCA_ARGP_TYPE_BOOLEAN) {
    return DOCA_ERROR_INITIALIZATION;
  }
  if (is_taken(*owned)) return DOCA_ERROR_BAD_STATE;
  return guarded(__func__, [&] {
    if (owned->long_name.empty()) owned->long_name = owned->short_name;
    state()->params.push_back(std::move(owned));
  });
}

doca_error_t doca_argp_register_version_callback(doca_argp_param_cb_t callback) {
  if (callback == nullptr) return DOCA_ERROR_INVALID_VALUE;
  if (!state()) return DOCA_ERROR_BAD_STATE;
  state()->version = callback;
  return DOCA_SUCCESS;
}

doca_error_t doca_argp_register_validation_callback(doca_argp_validation_cb_t callback) {
  if (callback == nullptr) return DOCA_ERROR_INVALID_VALUE;
  if (!state()) return DOCA_ERROR_BAD_STATE;
  return guarded(__func__, [&] { state()->validations.push_back(callback); });
}
