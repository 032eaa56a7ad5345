#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/packets/lane.hpp"
#include "core/error.hpp"
#include "core/escape.hpp"

namespace offload::packets {

inline constexpr std::uint32_t kEthernetLink = 1;  // LINKTYPE_ETHERNET

/// Takes what the lanes hand over: prints statistics and requests, and writes packets to a file in
/// pcap's format. One thread.
class ItemTaker {
 public:
  /// `file`: of packets; empty for none. `most` packets are written; 0: no end. Throws Error.
  ItemTaker(std::span<const kernels::packets::Semaphore> semaphores, const std::string& file,
            std::uint64_t most)
      : semaphores_(semaphores), next_(semaphores.size()), name_(file), most_(most) {
    if (file.empty()) return;
    file_.reset(std::fopen(file.c_str(), "wbe"));
    if (!file_) core::throw_errno("opening " + file);
    // The file's header (draft-ietf-opsawg-pcap): in this machine's byte order, times in ns.
    const std::uint32_t header[] = {0xa1b23c4d, 2U | 4U << 16,          0,
                                    0,          PacketItem::kMostBytes, kEthernetLink};
    write(header, sizeof header);
  }

  /// Takes all that is there. Returns whether there was something. Throws Error if the file cannot
  /// be written.
  bool take() {
    bool took = false;
    for (std::size_t i = 0; i < semaphores_.size(); ++i) {
      // As many at most as there are items, so that each queue gets its turn.
      for (std::uint64_t n = 0; n >> semaphores_[i].log2 == 0; ++n) {
        const kernels::packets::ItemStatus status = status_of(semaphores_[i], next_[i]);
        if (status != kernels::packets::ItemStatus::ready &&
            status != kernels::packets::ItemStatus::error)
          break;
        take(*reinterpret_cast<const PacketItem*>(semaphores_[i].item(next_[i])));
        set_status(kernels::SingleLane{}, semaphores_[i], next_[i]++,
                   kernels::packets::ItemStatus::free);
        took = true;
      }
    }
    if (took) flush();
    return took;
  }
  /// Closes the file. Throws Error as take(). No packet may be taken after it.
  void close() {
    if (file_ && std::fclose(file_.release()) != 0) core::throw_errno("writing " + name_);
  }
  [[nodiscard]] bool is_full() const noexcept { return most_ != 0 && captured_ >= most_; }
  [[nodiscard]] std::uint64_t captured() const noexcept { return captured_; }
  [[nodiscard]] std::uint64_t requests() const noexcept { return requests_; }
  [[nodiscard]] std::uint64_t statistics() const noexcept { return statistics_; }

 private:
  struct Close {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };
  void take(const PacketItem& item) {
    const std::uint32_t kept = std::min(item.length, PacketItem::kMostBytes);
    if (item.kind == PacketItem::Kind::statistics) {
      ++statistics_;
      fmt::print("{} packets: icmp {}, udp {}, tcp {}, other {}\n", item.packets, item.icmp,
                 item.udp, item.tcp, item.other);
    } else if (item.kind == PacketItem::Kind::http_get) {
      ++requests_;
      const auto headers = kernels::packets::parse_headers(item.bytes, kept);
      const auto* const text = reinterpret_cast<const char*>(item.bytes);
      std::string_view line(text + headers.payload,
                            headers.payload < kept ? kept - headers.payload : 0);
      line = line.substr(0, std::min(line.find('\r'), line.find('\n')));
      fmt::print("HTTP: {}\n", core::escaped(line));
    } else if (!is_full()) {
      ++captured_;
      const auto now = std::chrono::system_clock::now().time_since_epoch();
      const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
      const std::uint32_t record[] = {static_cast<std::uint32_t>(ns / 1'000'000'000),
                                      static_cast<std::uint32_t>(ns % 1'000'000'000), kept,
                                      item.length};
      write(record, sizeof record);
      write(item.bytes, kept);
    }
  }
  void write(const void* bytes, std::size_t count) {
    if (std::fwrite(bytes, 1, count, file_.get()) != count) core::throw_errno("writing " + name_);
  }
  /// A standard output that cannot be written shows at the end of the program.
  void flush() {
    if (std::fflush(file_ ? file_.get() : stdout) != 0 && file_) {
      core::throw_errno("writing " + name_);
    }
  }

  std::span<const kernels::packets::Semaphore> semaphores_;
  std::vector<std::uint64_t> next_;
  std::unique_ptr<std::FILE, Close> file_;
  std::string name_;
  std::uint64_t most_;
  std::uint64_t captured_ = 0;
  std::uint64_t requests_ = 0;
  std::uint64_t statistics_ = 0;
};

}  // namespace offload::packets
