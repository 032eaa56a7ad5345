// Loads a server of the service reverse by the client library, and checks every response.
// usage: client_library_load HOST PORT [NAME=VALUE...], with the names of Options. SIGTERM ends it
// with its results.
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "offload_client/client.hpp"

namespace {

/// Set by SIGTERM: no more requests are submitted.
std::atomic<bool> stopping = false;

using Words = std::map<std::string, std::string>;

struct Options {
  explicit Options(Words words) : texts(std::move(words)) {}

  [[nodiscard]] long number(const char* name, long by_default) const {
    const auto found = texts.find(name);
    return found == texts.end() ? by_default : std::stol(found->second);
  }
  [[nodiscard]] const char* text(const char* name) const {
    const auto found = texts.find(name);
    return found == texts.end() ? nullptr : found->second.c_str();
  }

  Words texts;
  long count = number("count", 1000);  ///< of each thread
  long in_flight = number("in-flight", 64);
  long size = number("size", 200);  ///< the longest request, bytes
  bool idempotent = number("idempotent", 0) != 0;
  bool endures = number("endure", 0) != 0;  ///< goes on when the connection is lost
};

/// The result of all threads: how many requests ended how, with the first text of each.
class Results {
 public:
  void add(int status, const std::string& text) {
    const std::lock_guard lock(mutex_);
    Result& result = results_[offload_client_status_name(status)];
    if (status == OFFLOAD_OK && has_failed_ && !is_ok_again_) {
      std::fputs("ok again\n", stderr);
      is_ok_again_ = true;
    }
    has_failed_ = has_failed_ || status != OFFLOAD_OK;
    if (result.count++ != 0) return;
    result.text = text;
    std::fprintf(stderr, "first %s\n", offload_client_status_name(status));
  }
  [[noreturn]] static void fail(const char* why) {
    std::fprintf(stderr, "%s\n", why);
    std::_Exit(1);
  }
  void print() const {
    for (const auto& [name, result] : results_) {
      std::printf("%s %ld %s\n", name.c_str(), result.count, result.text.c_str());
    }
  }

 private:
  struct Result {
    long count = 0;
    std::string text;
  };
  std::mutex mutex_;
  std::map<std::string, Result> results_;
  bool has_failed_ = false;   ///< a request has
  bool is_ok_again_ = false;  ///< one after it was answered
};

offload_client_options client_options(const Options& options) {
  offload_client_options made{};
  made.host = options.text("host");
  made.port = static_cast<std::uint16_t>(options.number("port", 0));
  made.max_in_flight = static_cast<std::uint32_t>(options.number("max-in-flight", 0));
  made.connect_timeout = static_cast<std::int32_t>(options.number("connect-timeout", 0));
  made.timeout = static_cast<std::int32_t>(options.number("timeout", 0));
  made.reconnect_timeout = static_cast<std::int32_t>(options.number("reconnect-timeout", 0));
  made.use_tls = static_cast<std::uint16_t>(options.number("tls", 0));
  made.tls_ca = options.text("ca");
  made.tls_server_name = options.text("server-name");
  made.tls_certificate = options.text("certificate");
  made.tls_key = options.text("key");
  made.tls_crl = options.text("crl");
  return made;
}

/// The requests of one thread, of which no two are alike.
class Load {
 public:
  Load(const Options& options, long thread, Results& results)
      : options_(options), thread_(thread), results_(results) {}

  void run() {
    while (next_ < options_.count && !stopping) {
      try {
        run_connection();
      } catch (const offload::Error& error) {
        results_.add(error.status(), error.what());
        if (!options_.endures) return;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));  // for the next server
      }
    }
  }

 private:
  void run_connection() {
    offload::Client client(client_options(options_));
    while (true) {
      while (next_ < options_.count && !stopping &&
             in_flight_.size() < std::size_t(options_.in_flight)) {
        const std::string request = payload(next_);
        if (!client.submit(request, std::uint64_t(next_), {{}, options_.idempotent})) break;
        in_flight_[next_++] = request;
      }
      const auto response = client.wait();
      if (!response) break;
      check(*response);
    }
    if (!in_flight_.empty()) Results::fail("a request did not end");
  }
  void check(const offload::Response& response) {
    const auto asked = in_flight_.find(long(response.tag));
    if (asked == in_flight_.end()) Results::fail("a request ended twice");
    const std::string& request = asked->second;
    if (response.status == OFFLOAD_OK &&
        response.data != std::string(request.rbegin(), request.rend())) {
      Results::fail("a wrong response");
    }
    results_.add(response.status, response.error);
    in_flight_.erase(asked);
  }
  [[nodiscard]] std::string payload(long number) const {
    std::string text = std::to_string(thread_) + ":" + std::to_string(number) + ":";
    text.resize(text.size() + std::size_t(number * 37 % options_.size), char('a' + number % 26));
    return text;
  }

  const Options& options_;
  long thread_;
  Results& results_;
  std::map<long, std::string> in_flight_;
  long next_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  Words words{{"host", argv[1]}, {"port", argv[2]}};
  for (int i = 3; i < argc; ++i) {
    const std::string word = argv[i];
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) return 2;
    words[word.substr(0, equals)] = word.substr(equals + 1);
  }
  const Options options(words);
  std::signal(SIGTERM, [](int) { stopping = true; });
  Results results;
  std::vector<std::thread> threads;
  for (long i = 0; i < options.number("threads", 1); ++i) {
    threads.emplace_back([&options, &results, i] { Load(options, i, results).run(); });
  }
  for (std::thread& thread : threads) thread.join();
  results.print();
  return 0;
}
