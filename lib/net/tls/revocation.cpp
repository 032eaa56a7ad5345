#include "net/tls/revocation.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "core/escape.hpp"
#include "core/fd.hpp"
#include "net/tls/error.hpp"

namespace offload::net {
namespace {

using core::Error;
using core::ErrorCode;
using Bio = std::unique_ptr<BIO, decltype(&::BIO_free_all)>;
using List = std::unique_ptr<X509_CRL, decltype(&::X509_CRL_free)>;

/// Returns what `print` writes, safe for the log and at most kLongestShown bytes; "?" if it fails.
template <class Print>
std::string printed(Print print) {
  const Bio memory(::BIO_new(::BIO_s_mem()), &::BIO_free_all);
  std::array<char, core::kLongestShown + 1> text;
  if (!memory || print(memory.get()) < 0) return "?";
  const int size = ::BIO_read(memory.get(), text.data(), static_cast<int>(text.size()));
  return size <= 0 ? "?" : core::escaped({text.data(), static_cast<std::size_t>(size)});
}

std::string text_of(const ASN1_TIME* time) {
  return printed([&](BIO* bio) { return ::ASN1_TIME_print(bio, time); });
}

std::string text_of(const X509_NAME* name) {
  // Characters beyond ASCII stay as they are.
  constexpr unsigned long kForm =
      XN_FLAG_RFC2253 & ~static_cast<unsigned long>(ASN1_STRFLGS_ESC_MSB);
  return printed([&](BIO* bio) { return ::X509_NAME_print_ex(bio, name, 0, kForm); });
}

std::vector<List> read_lists(const std::string& file) {
  const std::string action = "cannot use the revocation lists in " + file;
  const core::Fd fd = core::open_regular_file(file, action);
  // Without a buffer each byte of a line is a system call.
  const Bio bio(::BIO_push(::BIO_new(::BIO_f_buffer()), ::BIO_new_fd(fd.get(), BIO_NOCLOSE)),
                &::BIO_free_all);
  std::vector<List> lists;
  while (bio) {
    List list(::PEM_read_bio_X509_CRL(bio.get(), nullptr, nullptr, nullptr), &::X509_CRL_free);
    if (!list) break;
    lists.push_back(std::move(list));
  }
  const bool at_end = ERR_GET_REASON(::ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  if (lists.empty() && at_end) {
    ::ERR_clear_error();
    throw Error(
        ErrorCode::invalid_value,
        action + ": it has no list in PEM; convert one in DER with openssl crl -inform DER");
  }
  if (!at_end) throw_openssl_error(action);
  ::ERR_clear_error();
  return lists;
}

/// Returns whether an authority that `store` trusts has signed the list; throws if the authority's
/// name is right, and its signature or purpose is not.
bool is_of_trusted(X509_CRL* list, X509_STORE* store, const std::string& which) {
  const std::unique_ptr<X509_STORE_CTX, decltype(&::X509_STORE_CTX_free)> lookup(
      ::X509_STORE_CTX_new(), &::X509_STORE_CTX_free);
  if (!lookup || ::X509_STORE_CTX_init(lookup.get(), store, nullptr, nullptr) != 1) {
    throw_openssl_error("cannot check " + which, ErrorCode::no_memory);
  }
  const auto free_all = [](STACK_OF(X509) * all) { sk_X509_pop_free(all, &::X509_free); };
  const std::unique_ptr<STACK_OF(X509), decltype(free_all)> authorities(
      ::X509_STORE_CTX_get1_certs(lookup.get(), ::X509_CRL_get_issuer(list)), free_all);
  const int count = authorities ? sk_X509_num(authorities.get()) : 0;
  std::string why;
  for (int i = 0; i < count; ++i) {
    X509* const authority = sk_X509_value(authorities.get(), i);
    if (::X509_CRL_verify(list, ::X509_get0_pubkey(authority)) != 1) {
      why = "its signature is not that of the authority of this name";
    } else if ((::X509_get_key_usage(authority) & KU_CRL_SIGN) == 0) {
      why = "the certificate of its authority lacks the key usage cRLSign";
    } else {
      ::ERR_clear_error();
      return true;
    }
  }
  ::ERR_clear_error();
  if (!why.empty()) throw Error(ErrorCode::invalid_value, "cannot use " + which + ": " + why);
  return false;
}

}  // namespace

void use_revocation_lists(SSL_CTX* context, const std::string& file) {
  X509_STORE* const store = ::SSL_CTX_get_cert_store(context);
  bool is_trusted = false;
  for (const List& list : read_lists(file)) {
    const std::string which =
        "the revocation list of " + text_of(::X509_CRL_get_issuer(list.get())) + " in " + file;
    const ASN1_TIME* const end = ::X509_CRL_get0_nextUpdate(list.get());
    if (end != nullptr && ::X509_cmp_current_time(end) <= 0) {
      throw Error(ErrorCode::invalid_value,
                  which + " expired at " + text_of(end) + ": get a newer one from the authority");
    }
    const ASN1_TIME* const begin = ::X509_CRL_get0_lastUpdate(list.get());
    if (::X509_cmp_current_time(begin) >= 0) {
      throw Error(ErrorCode::invalid_value, which + " is not valid before " + text_of(begin) +
                                                ": check the clock of this machine");
    }
    is_trusted = is_of_trusted(list.get(), store, which) || is_trusted;
    if (::X509_STORE_add_crl(store, list.get()) != 1) throw_openssl_error("cannot use " + which);
  }
  if (!is_trusted) {
    throw Error(ErrorCode::invalid_value,
                "no revocation list in " + file +
                    " is of an authority that is trusted: every certificate would be refused");
  }
  ::X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
}

std::string describe_refused(const X509* certificate, int error) {
  const std::string serial = printed(
      [&](BIO* bio) { return ::i2a_ASN1_INTEGER(bio, ::X509_get0_serialNumber(certificate)); });
  const std::string authority = text_of(::X509_get_issuer_name(certificate));
  std::string text = text_of(::X509_get_subject_name(certificate)) + ", serial number " + serial;
  if (error == X509_V_ERR_UNABLE_TO_GET_CRL) {
    text += "; no revocation list of " + authority + " was given";
  } else if (error == X509_V_ERR_CRL_HAS_EXPIRED) {
    text += "; the revocation list of " + authority + " must be replaced by a newer one";
  }
  return text;
}

}  // namespace offload::net
