#include <fmt/core.h>

#include "apps/client/options.hpp"
#include "core/escape.hpp"

namespace offload::client {

Options Options::of_kind(const RequestKind& kind) const {
  Options options = *this;
  options.kinds.clear();
  if (kind.port) options.server_port = *kind.port;
  if (kind.sizes) {
    options.sizes = kind.sizes;
    options.sizes_file.clear();
    options.requests_file.clear();
  }
  if (!kind.requests_file.empty()) {
    options.requests_file = kind.requests_file;
    options.verification = *Verification::parse("recorded");
  }
  if (kind.service) {
    options.service = *kind.service;
    options.verification = {};
  }
  if (kind.verification) options.verification = *kind.verification;
  return options;
}

std::string Options::wrong_kinds() const {
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const RequestKind& kind = kinds[i];
    if (!of_kind(kind).has_sizes()) {
      return fmt::format("--kind {} requires a size or requests", kind.name);
    }
    for (std::size_t other = 0; other < i; ++other) {
      if (kinds[other].name == kind.name) {
        return fmt::format("--kind {} is given twice; each kind needs another name", kind.name);
      }
    }
  }
  if (std::size_t{thread_count} * connections < kinds.size()) {
    return fmt::format("{} kinds require at least one connection each (increase --connections)",
                       kinds.size());
  }
  return {};
}

std::string verification_of(const Options& options) {
  std::string all;
  for (const RequestKind& kind : options.kinds) {
    all += fmt::format("{}{}: {}", all.empty() ? "" : ", ", kind.name,
                       verification_of(options.of_kind(kind)));
  }
  if (!all.empty()) return all;
  if (options.expected_response) return "text of --expected-response";
  if (!options.uses_service()) return core::escaped(options.verification.text);
  return fmt::format("builtin (service {})", name_of(options.service));
}

}  // namespace offload::client
