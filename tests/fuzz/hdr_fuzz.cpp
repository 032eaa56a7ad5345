#include <sstream>
#include <string>

#include "core/error.hpp"
#include "metrics/hdr_codec.hpp"
#include "metrics/hdr_log.hpp"
#include "tests/fuzz/input.hpp"
#include "tests/metrics/hdr_payload.hpp"

/// Histograms and logs of HdrHistogram: each is read, or refused with one line. A histogram that
/// was read is the same after it is written and read again.
namespace offload::fuzz {
namespace {

using metrics::LatencyHistogram;

/// The kind of input, which its first byte selects.
enum class Kind : std::uint8_t { text, payload, counts, log };

void require_equal(const LatencyHistogram& one, const LatencyHistogram& other) {
  require(one.count() == other.count() && one.min() == other.min() && one.max() == other.max(),
          "the same count and extremes");
  for (std::size_t i = 0; i < one.end_bucket(); ++i) {
    require(one.count_at(i) == other.count_at(i), "the same counts");
  }
}

void require_coherent(const LatencyHistogram& histogram) {
  require(histogram.count() <= metrics::kMaxHdrCount, "no more than it may count");
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < LatencyHistogram::kBuckets; ++i) sum += histogram.count_at(i);
  require(sum == histogram.count(), "the counts add up");
  const auto median = histogram.percentile(0.5);
  require(histogram.min() <= median && median <= histogram.max(), "the median is between");
  require_equal(metrics::decode_hdr(metrics::encode_hdr(histogram)), histogram);
}

void read_log(const std::string& text) {
  std::istringstream log(text);
  metrics::HdrLogReader reader(log, "log");
  metrics::HdrLogInterval interval;
  while (reader.next(interval)) {
    require_coherent(interval.histogram);
    require(interval.length_s >= 0, "a length is not negative");
    const std::string again =
        metrics::hdr_log_header(0) + metrics::hdr_log_line(interval.tag, 1, 2, interval.histogram);
    std::istringstream written(again);
    metrics::HdrLogReader second(written, "written");
    metrics::HdrLogInterval same;
    require(second.next(same), "an interval");
    require(same.tag == interval.tag, "the same tag");
    require_equal(same.histogram, interval.histogram);
    require(!second.next(same), "one interval");
  }
}

void run(Input input) {
  const auto kind = static_cast<Kind>(input.integer<std::uint8_t>() % 4U);
  const auto bytes = input.rest();
  const std::string rest(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  try {
    switch (kind) {
      case Kind::text: return require_coherent(metrics::decode_hdr(rest));
      case Kind::payload: return require_coherent(metrics::decode_hdr(metrics::text_with(rest)));
      case Kind::counts:
        return require_coherent(metrics::decode_hdr(metrics::text_with(
            metrics::payload_with(rest, LatencyHistogram::kSignificantDigits, INT64_MAX))));
      case Kind::log: return read_log(rest);
    }
  } catch (const core::Error& error) {
    require(error.code() == core::ErrorCode::bad_message, "refused as a bad message");
    require(std::string(error.what()).find('\n') == std::string::npos, "in one line");
  }
}

}  // namespace
}  // namespace offload::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  offload::fuzz::run({data, size});
  return 0;
}
