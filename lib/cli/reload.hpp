#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cli/configuration.hpp"
#include "cli/leave.hpp"
#include "core/error.hpp"
#include "core/log.hpp"

namespace offload::cli {

/// Rereads the files of a program at SIGHUP, each with a function that reads it. Reads and checks
/// all of them before it changes anything, so that an invalid one changes nothing. One thread.
class Reload {
 public:
  /// The data that was read.
  struct Change {
    std::function<void()> apply;      ///< cannot fail
    std::vector<std::string> what{};  ///< for the log, such as "spin 0us -> 50us"
  };
  /// Reads and checks, and changes nothing. Throws Error that says what is wrong.
  using Read = std::function<Change()>;

  void add(Read read) { sources_.push_back(std::move(read)); }

  /// Rereads all of it, and logs what has changed. Returns whether nothing was wrong; the log says
  /// what was.
  bool run() const;

 private:
  std::vector<Read> sources_;
};

/// Rereads a program's command line with the file of its configuration, for Reload. Only the
/// settings of `names` may change: the log's levels do here, and `take(now)` takes the others
/// into `options`, which outlive the Change. Throws Error.
template <class Options, class Parse, class Take>
Reload::Change reread(Options& options, Parse parse, const std::vector<std::string>& names,
                      Take take) {
  const auto parsed = parse(options.configuration.argument_count, options.configuration.arguments);
  if (const auto* leave = std::get_if<Leave>(&parsed)) {
    throw core::Error(core::ErrorCode::invalid_value, leave->reason());
  }
  const auto& now = std::get<Options>(parsed);
  const auto apply = [&options, names, now, take] {
    take_changes(options.configuration, now.configuration, names);
    core::set_log_level(now.log.levels());
    take(now);
  };
  return {apply, described_changes(options.configuration, now.configuration, names)};
}

/// Files by their paths, with a digest of the content of each.
using FileDigests = std::map<std::string, std::size_t>;

/// Reads the files; an empty path is not one, and a file that cannot be read has a digest, too: its
/// reader reports the error.
FileDigests digests_of(const std::vector<std::string>& paths);

/// Returns "the content of PATH" for each file that differs. It never shows the content, which may
/// be a key.
std::vector<std::string> changed_files(const FileDigests& before, const FileDigests& now);

}  // namespace offload::cli
