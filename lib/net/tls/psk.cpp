#include "net/tls/psk.hpp"

#include <openssl/crypto.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "net/tls/error.hpp"

namespace offload::net {
namespace {

using core::Error;
using core::ErrorCode;

constexpr std::size_t kLongestIdentity = 128;
constexpr std::size_t kLeastKey = 16;
constexpr std::size_t kMostKey = 256;

struct Keys {
  std::vector<PreSharedKey> list;

  Keys& operator=(Keys&&) = delete;
  ~Keys() {
    for (PreSharedKey& key : list) ::OPENSSL_cleanse(key.key.data(), key.key.size());
  }
};

/// OpenSSL calls it when the context is freed.
void free_keys(void*, void* keys, CRYPTO_EX_DATA*, int, long, void*) {
  delete static_cast<Keys*>(keys);
}

int keys_index() {
  static const int index = SSL_CTX_get_ex_new_index(0, nullptr, nullptr, nullptr, &free_keys);
  return index;
}

/// Returns the index of the key that a peer names, in the data of its connection.
int named_index() {
  static const int index = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return index;
}

const std::vector<PreSharedKey>& keys_of(SSL* ssl) {
  return static_cast<const Keys*>(::SSL_CTX_get_ex_data(::SSL_get_SSL_CTX(ssl), keys_index()))
      ->list;
}

/// The key as the session that a handshake goes on from: SSL_CTX_set_psk_find_session_callback(3).
SSL_SESSION* make_session(SSL* ssl, const PreSharedKey& key) {
  constexpr unsigned char kAes128GcmSha256[] = {0x13, 0x01};
  std::unique_ptr<SSL_SESSION, decltype(&::SSL_SESSION_free)> session(::SSL_SESSION_new(),
                                                                      &::SSL_SESSION_free);
  const bool made =
      session &&
      ::SSL_SESSION_set1_master_key(session.get(),
                                    reinterpret_cast<const unsigned char*>(key.key.data()),
                                    key.key.size()) == 1 &&
      ::SSL_SESSION_set_cipher(session.get(), ::SSL_CIPHER_find(ssl, kAes128GcmSha256)) == 1 &&
      ::SSL_SESSION_set_protocol_version(session.get(), TLS1_3_VERSION) == 1;
  return made ? session.release() : nullptr;
}

int find_session(SSL* ssl, const unsigned char* identity, std::size_t size, SSL_SESSION** session) {
  const std::string_view wanted(reinterpret_cast<const char*>(identity), size);
  const auto& keys = keys_of(ssl);
  const auto found = std::find_if(keys.begin(), keys.end(),
                                  [&](const auto& key) { return key.identity == wanted; });
  *session = nullptr;
  // Unknown: the handshake would go on with a certificate, and fails, as there is none.
  if (found == keys.end()) return 1;
  *session = make_session(ssl, *found);
  ::SSL_set_ex_data(ssl, named_index(), const_cast<PreSharedKey*>(&*found));
  return *session != nullptr ? 1 : 0;
}

int use_session(SSL* ssl, const EVP_MD*, const unsigned char** identity, std::size_t* size,
                SSL_SESSION** session) {
  const PreSharedKey& key = keys_of(ssl).front();
  *identity = reinterpret_cast<const unsigned char*>(key.identity.data());
  *size = key.identity.size();
  *session = make_session(ssl, key);
  return *session != nullptr ? 1 : 0;
}

bool is_usable(const PreSharedKey& key) {
  return !key.identity.empty() && key.identity.size() <= kLongestIdentity &&
         key.key.size() >= kLeastKey && key.key.size() <= kMostKey;
}

}  // namespace

void use_keys(SSL_CTX* context, std::vector<PreSharedKey> keys) {
  auto owned = std::make_unique<Keys>();
  owned->list = std::move(keys);
  if (owned->list.empty() || !std::all_of(owned->list.begin(), owned->list.end(), &is_usable)) {
    throw Error(ErrorCode::invalid_value,
                "a pre-shared key for TLS must have 16 to 256 bytes and a name of 1 to 128");
  }
  if (::SSL_CTX_set_ex_data(context, keys_index(), owned.get()) != 1) {
    throw_openssl_error("cannot set the keys for TLS", ErrorCode::no_memory);
  }
  (void)owned.release();  // the context's now
  ::SSL_CTX_set_psk_find_session_callback(context, &find_session);
  ::SSL_CTX_set_psk_use_session_callback(context, &use_session);
}

std::string_view proven_identity(const SSL* ssl) {
  const auto* const named = static_cast<const PreSharedKey*>(::SSL_get_ex_data(ssl, named_index()));
  if (named == nullptr || ::SSL_is_init_finished(ssl) == 0) return {};
  return named->identity;
}

}  // namespace offload::net
