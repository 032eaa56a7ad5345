#include "core/error.hpp"

#include <sys/resource.h>

#include <iterator>
#include <system_error>

namespace offload::core {
namespace {

ErrorCode code_of(int errnum) noexcept {
  switch (errnum) {
    case EINVAL: return ErrorCode::invalid_value;
    case EPERM:
    case EACCES: return ErrorCode::not_permitted;
    case ENOENT: return ErrorCode::not_found;
    case EEXIST: return ErrorCode::already_exists;
    case EADDRINUSE:
    case EBUSY: return ErrorCode::in_use;
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case ENOBUFS: return ErrorCode::no_memory;
    case ETIMEDOUT: return ErrorCode::timed_out;
    case ECONNREFUSED:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENETDOWN:
    case ENETUNREACH:
    case ENOTCONN: return ErrorCode::not_connected;
    case EPIPE:
    case ECONNRESET: return ErrorCode::connection_reset;
    case EOPNOTSUPP:
    case ENOSYS: return ErrorCode::not_supported;
    case EIO: return ErrorCode::io_failed;
    case EAGAIN: return ErrorCode::again;
    case EALREADY: return ErrorCode::in_progress;
    case EINPROGRESS: return ErrorCode::connection_in_progress;
    case ECONNABORTED: return ErrorCode::connection_aborted;
    case ENOLCK: return ErrorCode::no_lock;
    case ENOSPC: return ErrorCode::full;
    case ESHUTDOWN: return ErrorCode::shutdown;
    case EPROTONOSUPPORT: return ErrorCode::not_supported;
    default: return ErrorCode::operating_system;
  }
}

struct Words {
  std::string_view name;
  std::string_view description;
};

/// Indexed by ErrorCode.
constexpr Words kWords[] = {
    {"invalid_value", "an argument is out of range or malformed"},
    {"not_supported", "this build, machine or device cannot do it"},
    {"not_permitted", "the operating system, the object or the peer does not allow it"},
    {"not_found", "there is no such device, path or name"},
    {"already_exists", "the name or address is taken"},
    {"in_use", "something else holds it"},
    {"again", "not now; the same call may succeed later"},
    {"in_progress", "it was started and has not finished yet"},
    {"no_memory", "memory or another resource is exhausted"},
    {"full", "it is full"},
    {"empty", "it is empty"},
    {"no_lock", "a lock could not be acquired or released"},
    {"timed_out", "a time limit was reached first"},
    {"not_connected", "there is no peer, not yet or no longer"},
    {"connection_reset", "the peer has disconnected"},
    {"connection_aborted", "the connection attempt was abandoned"},
    {"connection_in_progress", "the connection is being established"},
    {"shutdown", "the object or the peer is shutting down"},
    {"initialization", "an object or a device could not be set up"},
    {"bad_state", "the object's state does not allow the call"},
    {"unsupported_version", "the peer or the data is of another version"},
    {"bad_message", "the peer sent an invalid message"},
    {"io_failed", "reading or writing failed"},
    {"driver", "CUDA or another driver reported an error"},
    {"operating_system", "a system call failed"},
    {"unexpected", "an impossible result: a defect of this program"},
};
static_assert(std::size(kWords) == static_cast<std::size_t>(ErrorCode::unexpected) + 1);

/// Returns the resource limit of this process because of which a system call may have failed, for
/// the user to change; empty if that limit is not set.
std::string limit_behind(int errnum) {
  struct Known {
    int errnum;
    __rlimit_resource_t resource;
    const char* unit;
    const char* option;
  };
  static constexpr Known kKnown[] = {{EMFILE, RLIMIT_NOFILE, "", "-n"},
                                     {EFBIG, RLIMIT_FSIZE, " bytes", "-f"},
                                     {ENOMEM, RLIMIT_AS, " bytes of address space", "-v"}};
  for (const Known& known : kKnown) {
    rlimit limit{};
    if (known.errnum != errnum || ::getrlimit(known.resource, &limit) != 0) continue;
    if (limit.rlim_cur == RLIM_INFINITY) return {};
    return " (the limit is " + std::to_string(limit.rlim_cur) + known.unit + ", ulimit " +
           known.option + ")";
  }
  return {};
}

const Words& words_of(ErrorCode code) noexcept {
  static constexpr Words kUnknown = {"unknown", "not an error code of this library"};
  const auto index = static_cast<std::size_t>(code);
  return index < std::size(kWords) ? kWords[index] : kUnknown;
}

}  // namespace

std::string_view name_of(ErrorCode code) noexcept {
  return words_of(code).name;
}

std::string_view describe(ErrorCode code) noexcept {
  return words_of(code).description;
}

void throw_bad_state(std::string_view object, std::string_view state, std::string_view action) {
  std::string text(object);
  text.append(" is ").append(state).append(": cannot ").append(action);
  throw Error(ErrorCode::bad_state, text);
}

std::string describe_errno(int errnum) {
  return std::generic_category().message(errnum) + limit_behind(errnum);
}

void throw_errno(const std::string& action, int errnum) {
  throw Error(code_of(errnum), action + ": " + describe_errno(errnum),
              {Cause::Domain::system, errnum});
}

}  // namespace offload::core
