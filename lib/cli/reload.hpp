#pragma once

#include <functional>
#include <utility>
#include <vector>

namespace offload::cli {

/// What a program rereads at SIGHUP: files, each with a function that reads it. All of them are
/// read and checked before anything is changed, so that a wrong one changes nothing. One thread.
class Reload {
 public:
  /// Changes what runs to what was read; cannot fail.
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
