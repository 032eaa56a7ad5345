#include "apps/client/requests/size_mix.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <string_view>

#include "apps/client/requests/lines.hpp"
#include "core/error.hpp"
#include "core/escape.hpp"
#include "core/units.hpp"

namespace offload::client {
namespace {

constexpr std::uint32_t kMostUniformSizes = 256;
constexpr double kMostWeight = 1e9;

std::optional<std::uint32_t> size_of(std::string_view text) {
  const auto size = core::parse_size(text);
  if (!size || *size > kLongestMessage) return std::nullopt;
  return static_cast<std::uint32_t>(*size);
}

std::optional<double> weight_of(std::string_view text) {
  const auto weight = core::parse_number<double>(text);
  return weight && *weight > 0 && *weight <= kMostWeight ? weight : std::nullopt;
}

std::optional<SizeShare> share_of(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto bytes = size_of(text.substr(0, colon));
  const auto weight = weight_of(text.substr(colon + 1));
  if (!bytes || !weight) return std::nullopt;
  return SizeShare{*bytes, *weight};
}

SizeMix mix_of(const std::map<std::uint32_t, double>& weights) {
  SizeMix mix;
  for (const auto& [bytes, weight] : weights) mix.push_back({bytes, weight});
  return mix;
}

}  // namespace

std::optional<SizeMix> parse_mix(const std::string& text) {
  std::map<std::uint32_t, double> weights;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const auto share = share_of(std::string_view(text).substr(at, end - at));
    if (!share) return std::nullopt;
    weights[share->bytes] += share->weight;
    at = end + 1;
  }
  if (weights.size() > kMostSizes) return std::nullopt;
  return mix_of(weights);
}

std::optional<SizeMix> parse_uniform_sizes(const std::string& text) {
  const std::size_t dash = text.find('-');
  if (dash == std::string::npos) return std::nullopt;
  const auto low = size_of(std::string_view(text).substr(0, dash));
  const auto high = size_of(std::string_view(text).substr(dash + 1));
  if (!low || !high || *low > *high) return std::nullopt;
  const std::uint64_t span = *high - *low;
  const std::uint64_t steps = std::min<std::uint64_t>(span, kMostUniformSizes - 1);
  SizeMix mix;
  for (std::uint64_t i = 0; i <= steps; ++i) {
    mix.push_back({*low + static_cast<std::uint32_t>(steps == 0 ? 0 : span * i / steps), 1});
  }
  return mix;
}

SizeMix read_sizes_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) core::throw_errno("cannot read '" + path + "'");
  return parse_sizes(file, path);
}

SizeMix parse_sizes(std::istream& text, const std::string& name) {
  Lines lines(text, name);
  std::map<std::uint32_t, double> weights;
  for (std::string_view line; lines.next(line);) {
    const auto bytes = size_of(line);
    if (!bytes) lines.fail(fmt::format("'{}' is not a size from 0 to 16m", core::escaped(line)));
    weights[*bytes] += 1;
    if (weights.size() > kMostSizes) lines.fail(fmt::format("more than {} sizes", kMostSizes));
  }
  if (weights.empty()) lines.fail("it has no sizes");
  return mix_of(weights);
}

}  // namespace offload::client
