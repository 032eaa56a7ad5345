// Implements offload_client.h. No exception leaves these functions.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <new>
#include <string>

#include "clients/cpp/include/offload_client.h"
#include "clients/cpp/src/client.hpp"

using offload::clients::Outcome;

struct offload_client {
  std::optional<offload::clients::Client> client;  ///< none if it could not be opened
  pid_t process = ::getpid();
  std::atomic<bool> is_used = false;
  Outcome outcome;  ///< the last one
  std::string error;
};

namespace {

namespace core = offload::core;

constexpr std::size_t kLongestRequest = std::size_t{16} << 20;  // no server takes a longer one
constexpr const char* kNoMemory = "no memory";

/// Marks a client as in use by this thread during a call.
class Use {
 public:
  // Acquire and release: a client is handed from one thread to the next by calls alone.
  explicit Use(offload_client& client) noexcept
      : client_(client),
        is_owner_(::getpid() == client.process &&
                  !client.is_used.exchange(true, std::memory_order_acquire)) {}
  Use& operator=(Use&&) = delete;
  ~Use() {
    if (is_owner_) client_.is_used.store(false, std::memory_order_release);
  }
  [[nodiscard]] bool is_owner() const noexcept { return is_owner_; }

 private:
  offload_client& client_;
  bool is_owner_;
};

int fail(offload_client& client, int status, const char* why) noexcept {
  try {
    client.error = why;
  } catch (const std::bad_alloc&) {
    client.error.clear();  // the name of the status remains
  }
  return status;
}

/// Returns the status of `call()`, also for its exceptions.
template <class Call>
int guarded(offload_client& client, Call call) noexcept {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return fail(client, OFFLOAD_NO_MEMORY, kNoMemory);
  } catch (const core::Error& error) {
    const bool memory = error.code() == core::ErrorCode::no_memory;
    return fail(client, memory ? OFFLOAD_NO_MEMORY : OFFLOAD_INVALID, error.what());
  } catch (const std::exception& error) {
    return fail(client, OFFLOAD_INVALID, error.what());
  }
}

/// The options that this version knows, as openat2(2) takes its own: a program of a later version
/// may have more, which must be zero.
bool copy_options(const offload_client_options& from, offload_client_options& to) noexcept {
  const auto* const bytes = reinterpret_cast<const char*>(&from);
  if (from.struct_size < offsetof(offload_client_options, host) + sizeof from.host) return false;
  for (std::size_t i = sizeof to; i < from.struct_size; ++i) {
    if (bytes[i] != 0) return false;
  }
  std::memcpy(&to, bytes, std::min(from.struct_size, sizeof to));
  return true;
}

int open(offload_client& client, const offload_client_options& given) {
  offload_client_options options{};
  if (!copy_options(given, options)) {
    return fail(client, OFFLOAD_INVALID, "invalid struct_size, or options of a later version");
  }
  auto settings = offload::clients::read_options(options);
  try {
    client.client.emplace(std::move(settings));
  } catch (const core::Error& error) {
    if (error.code() != core::ErrorCode::not_found) throw;
    return fail(client, OFFLOAD_CONNECT_FAILED, error.what());
  }
  const int status = client.client->connect();
  if (status != OFFLOAD_OK) client.error = client.client->reason();
  return status;
}

int submit(offload_client& client, const offload_client_request* request) {
  if (!client.client) return OFFLOAD_LOST;
  if (request == nullptr || (request->data == nullptr && request->size != 0) ||
      request->size > kLongestRequest || (request->flags & ~OFFLOAD_IDEMPOTENT) != 0) {
    return fail(client, OFFLOAD_INVALID, "invalid request: no data, too long, or unknown flags");
  }
  const int status = client.client->submit(*request);
  if (status != OFFLOAD_OK) client.error = client.client->reason();
  return status;
}

int wait(offload_client& client, core::Duration timeout, offload_client_response* response) {
  if (!client.client) return OFFLOAD_IDLE;
  if (response == nullptr) return fail(client, OFFLOAD_INVALID, "response is null");
  Outcome& outcome = client.outcome;
  const int status = client.client->wait(timeout, outcome);
  if (status != OFFLOAD_OK) return status;
  const bool ok = outcome.status == OFFLOAD_OK;
  *response = {.data = ok ? outcome.data.data() : nullptr,
               .size = outcome.data.size(),
               .tag = outcome.tag,
               .status = outcome.status};
  if (!ok) client.error.swap(outcome.text);
  return OFFLOAD_OK;
}

}  // namespace

int offload_client_open(const offload_client_options* options, offload_client** client) {
  if (client == nullptr) return OFFLOAD_INVALID;
  *client = nullptr;
  if (options == nullptr) return OFFLOAD_INVALID;
  *client = new (std::nothrow) offload_client;
  if (*client == nullptr) return OFFLOAD_NO_MEMORY;
  return guarded(**client, [&] { return open(**client, *options); });
}

void offload_client_close(offload_client* client) {
  if (client == nullptr) return;
  if (client->client && client->process != ::getpid()) client->client->disown();
  delete client;
}

int offload_client_submit(offload_client* client, const offload_client_request* request) {
  if (client == nullptr) return OFFLOAD_INVALID;
  const Use use(*client);
  if (!use.is_owner()) return OFFLOAD_NOT_OWNER;
  return guarded(*client, [&] { return submit(*client, request); });
}

int offload_client_wait(offload_client* client, int timeout, offload_client_response* response) {
  if (client == nullptr) return OFFLOAD_INVALID;
  const Use use(*client);
  if (!use.is_owner()) return OFFLOAD_NOT_OWNER;
  const core::Duration limit =
      timeout < 0 ? core::Duration::max() : core::Duration(std::chrono::milliseconds(timeout));
  return guarded(*client, [&] { return wait(*client, limit, response); });
}

int offload_client_call(offload_client* client, const offload_client_request* request,
                        offload_client_response* response) {
  if (client == nullptr) return OFFLOAD_INVALID;
  const Use use(*client);
  if (!use.is_owner()) return OFFLOAD_NOT_OWNER;
  if (response == nullptr) return fail(*client, OFFLOAD_INVALID, "response is null");
  if (client->client && !client->client->is_idle()) {
    return fail(*client, OFFLOAD_BUSY, "submitted requests have not been returned");
  }
  int status = guarded(*client, [&] { return submit(*client, request); });
  if (status == OFFLOAD_FULL) {
    // Calls that timed out are in flight: this takes late responses, and the end of the connection.
    guarded(*client, [&] { return wait(*client, {}, response); });
    status = guarded(*client, [&] { return submit(*client, request); });
  }
  if (status != OFFLOAD_OK) return status;
  status = guarded(*client, [&] { return wait(*client, core::Duration::max(), response); });
  if (status == OFFLOAD_OK) return response->status;
  client->client->abandon();
  return status;
}

int offload_client_fd(const offload_client* client) {
  return client != nullptr && client->client ? client->client->fd() : -1;
}

const char* offload_client_error(const offload_client* client) {
  return client != nullptr ? client->error.c_str() : kNoMemory;
}

const char* offload_client_status_name(int status) {
  switch (status) {
    case OFFLOAD_OK: return "ok";
    case OFFLOAD_INVALID: return "invalid";
    case OFFLOAD_NO_MEMORY: return "no_memory";
    case OFFLOAD_CONNECT_FAILED: return "connect_failed";
    case OFFLOAD_TIMED_OUT: return "timed_out";
    case OFFLOAD_LOST: return "lost";
    case OFFLOAD_MALFORMED: return "malformed";
    case OFFLOAD_NOT_OWNER: return "not_owner";
    case OFFLOAD_FULL: return "full";
    case OFFLOAD_BUSY: return "busy";
    case OFFLOAD_NOTHING: return "nothing";
    case OFFLOAD_IDLE: return "idle";
    default: break;
  }
  // They are literals, so they end in a zero.
  const auto name = offload::protocol::name_of(static_cast<offload::protocol::Refusal>(status));
  return status > 0 && !name.empty() ? name.data() : "unknown";
}
