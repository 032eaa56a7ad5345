#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "net/tls/context.hpp"
#include "tests/support/temp_dir.hpp"

namespace offload::support {

/// A certificate authority of a test: a key and a certificate, and those that it signs, as files.
class Authority {
 public:
  /// `usage`: of its key, as in "keyCertSign"; empty: it may be used for everything.
  explicit Authority(const std::string& name, const std::string& usage = {})
      : Authority(name, *this, 0, usage) {}
  /// An intermediate authority: `parent` signs its certificate, as the next one of issue(), and the
  /// files of its certificates contain that one too.
  Authority(const std::string& name, const Authority& parent)
      : Authority(name, parent, ++parent.last_serial_, {}) {}

  [[nodiscard]] std::string ca_file() const { return folder_.file("ca.pem"); }

  /// `names`: as in "DNS:server.test,IP:127.0.0.1". `lifetime`: seconds from now on; it began a day
  /// before.
  [[nodiscard]] net::TlsCertificate issue(const std::string& name, const std::string& names,
                                          long lifetime = kDay) const {
    net::TlsCertificate files{folder_.file(name + ".pem"), folder_.file(name + ".key")};
    const Key key(EVP_EC_gen("P-256"));
    const Certificate made(::X509_new());
    fill(made.get(), name, key.get(), lifetime, ++last_serial_);
    extend(made.get(), NID_subject_alt_name, names.c_str());
    sign(made.get());
    write(files.chain_file, [&](FILE* file) {
      const bool written = ::PEM_write_X509(file, made.get()) == 1;
      return written && is_intermediate_ ? ::PEM_write_X509(file, certificate_.get()) : written;
    });
    write(files.key_file, [&](FILE* file) {
      return ::PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    });
    ::chmod(files.key_file.c_str(), 0600);
    return files;
  }

  [[nodiscard]] std::string list_file() const { return folder_.file("list.pem"); }
  /// Writes a list that revokes the certificates with these serial numbers, in the order of issue()
  /// from 1 on, and is valid for `lifetime` seconds from now on. Returns its file.
  [[nodiscard]] std::string revoke(const std::vector<long>& serials, long lifetime = kDay,
                                   long age = kDay) const {
    const List list(::X509_CRL_new());
    const Time begin(::X509_gmtime_adj(nullptr, -age));
    const Time end(::X509_gmtime_adj(nullptr, lifetime));
    ::X509_CRL_set_version(list.get(), X509_CRL_VERSION_2);
    ::X509_CRL_set_issuer_name(list.get(), ::X509_get_subject_name(certificate_.get()));
    ::X509_CRL_set1_lastUpdate(list.get(), begin.get());
    ::X509_CRL_set1_nextUpdate(list.get(), end.get());
    for (const long serial : serials) {
      const Number number(::ASN1_INTEGER_new());
      ::ASN1_INTEGER_set(number.get(), serial);
      X509_REVOKED* const entry = ::X509_REVOKED_new();
      ::X509_REVOKED_set_serialNumber(entry, number.get());
      ::X509_REVOKED_set_revocationDate(entry, begin.get());
      ::X509_CRL_add0_revoked(list.get(), entry);
    }
    if (::X509_CRL_sign(list.get(), key_.get(), ::EVP_sha256()) == 0) {
      throw std::runtime_error("X509_CRL_sign");
    }
    write(list_file(), [&](FILE* file) { return ::PEM_write_X509_CRL(file, list.get()); });
    return list_file();
  }

 private:
  static constexpr long kDay = 24L * 60 * 60;
  template <auto kFree>
  struct Free {
    template <class T>
    void operator()(T* object) const noexcept {
      kFree(object);
    }
  };
  using Key = std::unique_ptr<EVP_PKEY, Free<&::EVP_PKEY_free>>;
  using List = std::unique_ptr<X509_CRL, Free<&::X509_CRL_free>>;
  using Number = std::unique_ptr<ASN1_INTEGER, Free<&::ASN1_INTEGER_free>>;
  using Time = std::unique_ptr<ASN1_TIME, Free<&::ASN1_TIME_free>>;
  using Certificate = std::unique_ptr<X509, Free<&::X509_free>>;

  /// `parent`: this, or the authority that signs its certificate, with that serial number.
  Authority(const std::string& name, const Authority& parent, long serial, const std::string& usage)
      : name_(name),
        is_intermediate_(&parent != this),
        key_(EVP_EC_gen("P-256")),
        certificate_(::X509_new()) {
    parent.fill(certificate_.get(), name, key_.get(), kDay, serial);
    extend(certificate_.get(), NID_basic_constraints, "critical,CA:TRUE");
    if (!usage.empty()) extend(certificate_.get(), NID_key_usage, usage.c_str());
    parent.sign(certificate_.get());
    write(ca_file(), [&](FILE* file) { return ::PEM_write_X509(file, certificate_.get()); });
  }

  void fill(X509* made, const std::string& name, EVP_PKEY* key, long lifetime, long serial) const {
    ::X509_set_version(made, X509_VERSION_3);
    ::ASN1_INTEGER_set(::X509_get_serialNumber(made), serial);
    ::X509_gmtime_adj(::X509_getm_notBefore(made), -kDay);
    ::X509_gmtime_adj(::X509_getm_notAfter(made), lifetime);
    const auto set_name = [](X509_NAME* to, const std::string& text) {
      ::X509_NAME_add_entry_by_txt(to, "CN", MBSTRING_ASC,
                                   reinterpret_cast<const unsigned char*>(text.c_str()), -1, -1, 0);
    };
    set_name(::X509_get_subject_name(made), name);
    set_name(::X509_get_issuer_name(made), name_);
    ::X509_set_pubkey(made, key);
  }
  static void extend(X509* made, int what, const char* value) {
    X509_EXTENSION* const extension = ::X509V3_EXT_conf_nid(nullptr, nullptr, what, value);
    ::X509_add_ext(made, extension, -1);
    ::X509_EXTENSION_free(extension);
  }
  void sign(X509* made) const {
    if (::X509_sign(made, key_.get(), ::EVP_sha256()) == 0) throw std::runtime_error("X509_sign");
  }
  template <class Write>
  static void write(const std::string& path, Write write_to) {
    FILE* const file = std::fopen(path.c_str(), "we");
    const bool written = file != nullptr && write_to(file) == 1;
    if (file != nullptr) std::fclose(file);
    if (!written) throw std::runtime_error("cannot write " + path);
  }

  TempDir folder_;
  std::string name_;
  bool is_intermediate_;
  mutable long last_serial_ = 0;
  Key key_;
  Certificate certificate_;
};

}  // namespace offload::support
