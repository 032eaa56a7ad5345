#include "net/http_client.hpp"

#include <curl/curl.h>
#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <new>

#include "core/error.hpp"

namespace offload::net {
namespace {

/// The replies of programs of the suite are far shorter.
constexpr std::size_t kMostBytes = 64U << 20;

struct CurlDeleter {
  void operator()(CURL* curl) const noexcept { curl_easy_cleanup(curl); }
  void operator()(char* text) const noexcept { curl_free(text); }
};

std::size_t append(const char* bytes, std::size_t size, std::size_t count, void* body) {
  auto& text = *static_cast<std::string*>(body);
  if (text.size() + size * count > kMostBytes) return 0;  // ends the transfer
  text.append(bytes, size * count);
  return size * count;
}

/// The socket, and who is at its other end if it is a UNIX socket.
struct UnixPeer {
  const std::string* path;
  curl_socket_t socket = CURL_SOCKET_BAD;
  int errnum = 0;         ///< why there is no socket
  std::string refusal{};  ///< why it is not trusted
};

bool owns_folder(unsigned user, const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  struct stat status {};
  return ::stat(folder.c_str(), &status) == 0 && status.st_uid == user &&
         (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/// libcurl does not tell why it cannot open a socket.
curl_socket_t open_socket(void* self, curlsocktype, curl_sockaddr* address) {
  UnixPeer& peer = *static_cast<UnixPeer*>(self);
  peer.socket = ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
  if (peer.socket == CURL_SOCKET_BAD) peer.errnum = errno;
  return peer.socket;
}

/// Checks the peer once it is connected, before anything is sent.
int check_peer(void* self, char*, char*, int, int) {
  UnixPeer& peer = *static_cast<UnixPeer*>(self);
  ucred owner{};
  socklen_t size = sizeof owner;
  if (::getsockopt(peer.socket, SOL_SOCKET, SO_PEERCRED, &owner, &size) != 0) {
    peer.refusal = "cannot determine the owner of the socket: " + core::describe_errno(errno);
    return CURL_PREREQFUNC_ABORT;
  }
  const unsigned self_id = ::geteuid();
  if (owner.uid == self_id || owner.uid == 0) return CURL_PREREQFUNC_OK;
  if (self_id == 0 && owns_folder(owner.uid, *peer.path)) return CURL_PREREQFUNC_OK;
  peer.refusal =
      fmt::format("the socket belongs to user {}, process {}; only user {} and root are trusted",
                  owner.uid, owner.pid, self_id);
  return CURL_PREREQFUNC_ABORT;
}

std::string url_of(CURL* curl, const HttpQuestion& question) {
  if (question.value.empty()) return question.url;
  const std::unique_ptr<char, CurlDeleter> value(
      curl_easy_escape(curl, question.value.data(), static_cast<int>(question.value.size())));
  if (!value) throw std::bad_alloc();
  return fmt::format("{}?value={}", question.url, value.get());
}

}  // namespace

HttpAnswer ask(const HttpQuestion& question, core::Duration limit) {
  const std::unique_ptr<CURL, CurlDeleter> curl(curl_easy_init());
  if (!curl) throw core::Error(core::ErrorCode::no_memory, "libcurl cannot be initialized");
  HttpAnswer answer{};
  UnixPeer peer{&question.unix_socket};
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(limit).count();
  curl_easy_setopt(curl.get(), CURLOPT_URL, url_of(curl.get(), question).c_str());
  curl_easy_setopt(curl.get(), CURLOPT_OPENSOCKETFUNCTION, &open_socket);
  curl_easy_setopt(curl.get(), CURLOPT_OPENSOCKETDATA, &peer);
  if (!question.unix_socket.empty()) {
    curl_easy_setopt(curl.get(), CURLOPT_UNIX_SOCKET_PATH, question.unix_socket.c_str());
    curl_easy_setopt(curl.get(), CURLOPT_PREREQFUNCTION, &check_peer);
    curl_easy_setopt(curl.get(), CURLOPT_PREREQDATA, &peer);
  }
  curl_easy_setopt(curl.get(), CURLOPT_PROTOCOLS_STR, "http");
  curl_easy_setopt(curl.get(), CURLOPT_PROXY, "");  // whatever the environment says
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT_MS, static_cast<long>(milliseconds));
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, &append);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &answer.body);
  if (question.posts) {
    curl_easy_setopt(curl.get(), CURLOPT_POST, 1L);
    curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDSIZE, 0L);
  }
  const CURLcode result = curl_easy_perform(curl.get());
  if (!peer.refusal.empty()) throw core::Error(core::ErrorCode::not_permitted, peer.refusal);
  if (result == CURLE_OUT_OF_MEMORY) throw std::bad_alloc();
  if (result != CURLE_OK) {
    if (peer.errnum == EMFILE) core::throw_errno("cannot open a socket", EMFILE);
    long errnum = 0;
    curl_easy_getinfo(curl.get(), CURLINFO_OS_ERRNO, &errnum);
    throw core::Error(core::ErrorCode::not_connected, curl_easy_strerror(result),
                      {core::Cause::Domain::system, static_cast<int>(errnum)});
  }
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &answer.status);
  return answer;
}

}  // namespace offload::net
