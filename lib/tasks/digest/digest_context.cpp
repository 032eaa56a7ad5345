#include "tasks/digest/digest_context.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <utility>

#include "core/error.hpp"

namespace offload::digest {
namespace {

using core::ErrorCode;

const EVP_MD* native(Algorithm algorithm) noexcept {
  switch (algorithm) {
    case Algorithm::sha1: return EVP_sha1();
    case Algorithm::sha512: return EVP_sha512();
    case Algorithm::sha256: break;
  }
  return EVP_sha256();
}

}  // namespace

std::string_view name_of(Algorithm algorithm) noexcept {
  switch (algorithm) {
    case Algorithm::sha1: return "SHA-1";
    case Algorithm::sha256: return "SHA-256";
    case Algorithm::sha512: return "SHA-512";
  }
  return "unknown";
}

std::string DigestTask::hex() const {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : digest()) {
    text += kDigits[std::to_integer<std::size_t>(byte >> 4)];
    text += kDigits[std::to_integer<std::size_t>(byte & std::byte{15})];
  }
  return text;
}

void DigestContext::Free::operator()(evp_md_ctx_st* state) const noexcept {
  EVP_MD_CTX_free(state);
}

DigestContext::DigestContext(Algorithm algorithm, std::string name)
    : Context(std::move(name)), algorithm_(algorithm) {}

DigestContext::~DigestContext() {
  end();
}

std::size_t DigestContext::size_of(Algorithm algorithm) noexcept {
  return static_cast<std::size_t>(EVP_MD_get_size(native(algorithm)));
}

progress::Context::Step DigestContext::on_start() {
  state_.reset(EVP_MD_CTX_new());
  // The first use of an algorithm looks it up and allocates; later ones do not.
  if (state_ == nullptr || EVP_DigestInit_ex(state_.get(), native(algorithm_), nullptr) != 1) {
    state_.reset();
    throw core::Error(ErrorCode::driver,
                      "OpenSSL cannot begin " + std::string(name_of(algorithm_)));
  }
  return Step::done;
}

progress::Context::Step DigestContext::on_stop() noexcept {
  element_ = nullptr;
  state_.reset();
  return Step::done;
}

core::Status DigestContext::on_submit(progress::Task& submitted) noexcept {
  auto& task = static_cast<DigestTask&>(submitted);
  task.size_ = 0;
  if (!task.source) return ErrorCode::invalid_value;
  if (!task.source->fits(kMostElements) || !task.source->all_in_host()) {
    return ErrorCode::not_supported;
  }
  return {};
}

bool DigestContext::on_poll(std::size_t most) {
  std::size_t room = kBytesAtOnce;
  bool worked = false;
  for (; most != 0 && room != 0; --most) {
    auto* const task = static_cast<DigestTask*>(first_in_flight());
    if (task == nullptr) break;
    worked = true;
    if (element_ == nullptr && !begin(*task)) failed_ = true;
    room -= hash_piece(room);
    if (!failed_ && left_ != 0 && element_ != nullptr) break;
    const core::Status status = finish(*task);
    element_ = nullptr;
    complete(*task, status);
  }
  return worked;
}

bool DigestContext::begin(const DigestTask& task) noexcept {
  element_ = task.source.get();
  offset_ = 0;
  left_ = task.source->total_length();
  failed_ = false;
  return EVP_DigestInit_ex(state_.get(), nullptr, nullptr) == 1;
}

std::size_t DigestContext::hash_piece(std::size_t most) noexcept {
  std::size_t done = 0;
  while (done < most && left_ != 0 && element_ != nullptr && !failed_) {
    const auto data = element_->data();
    const auto rest = data.subspan(std::min(offset_, data.size()));
    if (rest.empty()) {
      element_ = element_->next();
      offset_ = 0;
      continue;
    }
    const std::size_t size = std::min({rest.size(), most - done, left_});
    failed_ = EVP_DigestUpdate(state_.get(), rest.data(), size) != 1;
    offset_ += size;
    left_ -= size;
    done += size;
  }
  return done;
}

core::Status DigestContext::finish(DigestTask& task) noexcept {
  if (failed_) return ErrorCode::driver;
  if (left_ != 0) return ErrorCode::bad_state;  // the source became shorter
  unsigned size = 0;
  auto* const bytes = reinterpret_cast<unsigned char*>(task.digest_.data());
  if (EVP_DigestFinal_ex(state_.get(), bytes, &size) != 1) return ErrorCode::driver;
  task.size_ = size;
  return {};
}

}  // namespace offload::digest
