#include "net/unix_socket.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

#include "core/error.hpp"
#include "net/own_file.hpp"

namespace offload::net {
namespace {

using core::check_errno;
using core::Error;
using core::ErrorCode;

core::Fd open_socket() {
  return core::Fd(check_errno(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0),
                              "cannot open a socket"));
}

sockaddr_un name_of(const std::string& path) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, path.data(), path.size());
  return name;
}

/// Removes what a program that was killed left behind.
void remove_stale(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) < 0) return;
  if (!S_ISSOCK(status.st_mode)) {
    throw Error(ErrorCode::in_use, path + ": the path exists and is not a socket");
  }
  const core::Fd probe = open_socket();
  const sockaddr_un name = name_of(path);
  const int result = ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name);
  if (result == 0 || errno != ECONNREFUSED) {
    throw Error(ErrorCode::in_use, path + ": another program listens there");
  }
  remove_same_file(path, status);  // if another program was quicker, bind() fails
}

}  // namespace

bool is_unix_path(const std::string& path) noexcept {
  return !path.empty() && path.size() < sizeof(sockaddr_un::sun_path) &&
         path.find('\0') == std::string::npos;
}

core::Fd listen_unix(const std::string& path, int backlog) {
  if (!is_unix_path(path)) {
    throw Error(ErrorCode::invalid_value, "'" + path + "' is not a valid socket path");
  }
  remove_stale(path);
  core::Fd socket = open_socket();
  const sockaddr_un name = name_of(path);
  const std::string action = "cannot listen on " + path;
  // A socket file gets the mode that its socket has when it is bound: right from the start.
  check_errno(::fchmod(socket.get(), 0600), action);
  const int bound = ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name);
  if (bound != 0 && errno == ENOENT) {
    throw Error(ErrorCode::not_found, action + ": " + core::describe_errno(ENOENT) +
                                          ": make the folder, or choose another path");
  }
  check_errno(bound, action);
  check_errno(::listen(socket.get(), backlog), action);
  return socket;
}

}  // namespace offload::net
