#pragma once

#include <functional>
#include <utility>
#include <vector>

namespace offload::cli {

/// Rereads the files of a program at SIGHUP, each with a function that reads it. Reads and checks
/// all of them before it changes anything, so that an invalid one changes nothing. One thread.
class Reload {
 public:
  /// Applies the data that was read; cannot fail.
  using Apply = std::function<void()>;
  /// Reads and checks, and changes nothing. Throws Error that says what is wrong.
  using Read = std::function<Apply()>;

  void add(Read read) { sources_.push_back(std::move(read)); }

  /// Rereads all of it. Returns whether nothing was wrong; the log says what was.
  bool run() const;

 private:
  std::vector<Read> sources_;
};

}  // namespace offload::cli
