#include <string_view>

#include "apps/report/compare/comparison_report.hpp"
#include "apps/report/histograms.hpp"
#include "apps/report/merge/merge.hpp"
#include "apps/report/page/page.hpp"
#include "core/error.hpp"
#include "results/read_result.hpp"
#include "results/write_result.hpp"
#include "tests/fuzz/input.hpp"

/// Anything, taken as a result of offload-client: it is refused in one line, or can be shown,
/// compared, merged and written, and is then a result again.
namespace offload::fuzz {
namespace {

void use(const results::Result& result) {
  report::make_page({result, result});
  report::CompareOptions options;
  options.thresholds = {*report::parse_threshold("p99>1.1"), *report::parse_threshold("rate<0.9")};
  report::report_comparison(options, {"base", {result}}, {"new", {result}});
  try {
    const results::Result merged = report::merge({result}).result;
    report::histogram_log(merged);
  } catch (const core::Error& error) {
    require(error.code() == core::ErrorCode::invalid_value ||
                error.code() == core::ErrorCode::bad_message,
            "a result that cannot be merged is refused");
  }
  const std::string text = results::result_text(result);
  require(results::result_text(results::parse_result(text, "again")) == text,
          "what was written is read as it was");
}

void run(std::string_view text) {
  try {
    for (const auto& each : results::parse_result_file(text, "the file").results) use(each);
  } catch (const core::Error& error) {
    require(error.code() == core::ErrorCode::bad_message, "it is refused as a message");
    require(std::string_view(error.what()).find('\n') == std::string_view::npos, "in one line");
  }
}

}  // namespace
}  // namespace offload::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  offload::fuzz::run({reinterpret_cast<const char*>(data), size});
  return 0;
}
