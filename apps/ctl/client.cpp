#include "apps/ctl/client.hpp"

#include <curl/curl.h>
#include <fmt/core.h>

#include <memory>

#include "core/error.hpp"

namespace offload::ctl {
namespace {

/// More than what the program gives its control thread.
constexpr long kSeconds = 10;
/// A status of thousands of channels is far shorter.
constexpr std::size_t kMostBytes = 64U << 20;

struct End {
  void operator()(CURL* curl) const noexcept { curl_easy_cleanup(curl); }
  void operator()(char* text) const noexcept { curl_free(text); }
};

std::size_t append(const char* bytes, std::size_t size, std::size_t count, void* body) {
  auto& text = *static_cast<std::string*>(body);
  if (text.size() + size * count > kMostBytes) return 0;  // ends the transfer
  text.append(bytes, size * count);
  return size * count;
}

}  // namespace

Answer ask(const Options& options) {
  const std::unique_ptr<CURL, End> curl(curl_easy_init());
  if (!curl) throw core::Error(core::ErrorCode::no_memory, "libcurl does not start");
  std::string url = "http://offload/" + options.command;
  if (!options.argument.empty()) {
    const std::unique_ptr<char, End> value(curl_easy_escape(
        curl.get(), options.argument.data(), static_cast<int>(options.argument.size())));
    if (!value) throw core::Error(core::ErrorCode::no_memory, "libcurl has no memory");
    url += fmt::format("?value={}", value.get());
  }
  Answer answer{};
  curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_UNIX_SOCKET_PATH, options.socket.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_PROXY, "");  // whatever the environment says
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT, kSeconds);
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, &append);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &answer.body);
  if (options.changes) {
    curl_easy_setopt(curl.get(), CURLOPT_POST, 1L);
    curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDSIZE, 0L);
  }
  const CURLcode result = curl_easy_perform(curl.get());
  if (result != CURLE_OK) {
    throw core::Error(core::ErrorCode::not_connected,
                      fmt::format("unix:{}: {}", options.socket, curl_easy_strerror(result)));
  }
  long status = 0;
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &status);
  answer.good = status == 200;
  return answer;
}

}  // namespace offload::ctl
