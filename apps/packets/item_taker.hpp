#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "apps/packets/lane.hpp"

namespace offload::packets {

/// Takes what the lanes hand over: prints statistics and requests, and writes packets to a file in
/// pcap's format. One thread.
class ItemTaker {
 public:
  /// `file`: of packets; empty for none. `most` packets are written; 0: no end. Throws Error.
  ItemTaker(std::span<const kernels::packet::Semaphore> semaphores, const std::string& file,
            std::uint64_t most);

  /// Takes all that is there. Returns whether there was something. Throws Error if the file cannot
  /// be written.
  bool take();
  /// Closes the file. Throws Error as take(). No packet may be taken after it.
  void close();
  [[nodiscard]] bool is_full() const noexcept { return most_ != 0 && captured_ >= most_; }
  [[nodiscard]] std::uint64_t captured() const noexcept { return captured_; }
  [[nodiscard]] std::uint64_t requests() const noexcept { return requests_; }
  [[nodiscard]] std::uint64_t statistics() const noexcept { return statistics_; }

 private:
  struct Close {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };
  void take(const PacketItem& item);
  void write(const void* bytes, std::size_t count);
  void flush();

  std::span<const kernels::packet::Semaphore> semaphores_;
  std::vector<std::uint64_t> next_;
  std::unique_ptr<std::FILE, Close> file_;
  std::string name_;
  std::uint64_t most_;
  std::uint64_t captured_ = 0;
  std::uint64_t requests_ = 0;
  std::uint64_t statistics_ = 0;
};

}  // namespace offload::packets
