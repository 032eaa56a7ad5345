#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/module/payload.hpp"
#include "kernels/module/service_module.hpp"

using offload::kernels::Block;
using offload::kernels::read_little_endian;
using offload::kernels::Request;
using offload::kernels::ServiceSetup;

/// Answers a key of 8 bytes with its value from a table: u32 1 if the table has it, else 0 | u64
/// value, both little endian. A request of another length gets an empty answer.
///
/// The table never changes: open addressing, at most half full, an entry 16 bytes and aligned to
/// them, so that a probe is one read.
struct Lookup {
  static constexpr const char* kName = "lookup";
  static constexpr std::uint32_t kLanes = 1;  // a key has no work for two

  OFFLOAD_HOST_DEVICE static std::uint32_t response_length(std::uint32_t length) {
    return length == sizeof(std::uint64_t) ? 12 : 0;
  }

  template <class Group, class Response>
  OFFLOAD_HOST_DEVICE void operator()(const Group& group, const Request& request,
                                      const Response& response) const {
    std::uint64_t key = 0;
    Block answer{};
    if (response.length() != 0 && read_little_endian(request, 0, key)) answer = find(key);
    response.fill(group, [&](std::uint32_t) { return answer; });
  }

  /// Makes the service from the file of --service-option table=FILE. Throws std::exception.
  static Lookup make(ServiceSetup& setup) {
    const std::vector<Entry> entries = read(setup.option("table"));
    Lookup made{};
    std::uint64_t size = 2;
    while (size < 2 * entries.size()) size *= 2;
    made.mask_ = size - 1;
    std::vector<Entry> table(size, Entry{kNoKey, 0});
    for (const Entry& entry : entries) made.insert(table, entry);
    made.table_ = setup.copy(table);
    return made;
  }

 private:
  struct alignas(16) Entry {
    std::uint64_t key;
    std::uint64_t value;
  };
  /// The key of an empty entry: no table has it.
  static constexpr std::uint64_t kNoKey = ~std::uint64_t{0};

  /// The finalizer of MurmurHash3. Keys that are counted up spread too.
  OFFLOAD_HOST_DEVICE static std::uint64_t hash(std::uint64_t key) {
    key = (key ^ (key >> 33)) * 0xff51'afd7'ed55'8ccdULL;
    key = (key ^ (key >> 33)) * 0xc4ce'b9fe'1a85'ec53ULL;
    return key ^ (key >> 33);
  }

  [[nodiscard]] OFFLOAD_HOST_DEVICE Entry entry(std::uint64_t index) const {
#if defined(__CUDA_ARCH__)
    const ulonglong2 both = __ldg(reinterpret_cast<const ulonglong2*>(table_) + index);
    return {both.x, both.y};
#else
    return table_[index];
#endif
  }

  /// Ends: the table has an empty entry, and none of them is further from its place than longest_.
  [[nodiscard]] OFFLOAD_HOST_DEVICE Block find(std::uint64_t key) const {
    std::uint64_t index = hash(key) & mask_;
    for (std::uint32_t probe = 0; probe <= longest_; ++probe, index = (index + 1) & mask_) {
      const Entry found = entry(index);
      if (found.key == kNoKey) break;
      if (found.key == key) {
        return {{1, static_cast<std::uint32_t>(found.value),
                 static_cast<std::uint32_t>(found.value >> 32), 0}};
      }
    }
    return {};
  }

  void insert(std::vector<Entry>& table, const Entry& entry) {
    if (entry.key == kNoKey) throw std::runtime_error("the key 2^64 - 1 cannot be in a table");
    std::uint64_t index = hash(entry.key) & mask_;
    std::uint32_t probe = 0;
    for (; table[index].key != kNoKey; ++probe, index = (index + 1) & mask_) {
      if (table[index].key == entry.key) {
        throw std::runtime_error("the key " + std::to_string(entry.key) + " is there twice");
      }
    }
    table[index] = entry;
    if (probe > longest_) longest_ = probe;
  }

  /// The format is README.md's. Throws std::exception.
  static std::vector<Entry> read(const std::string& path) {
    struct {
      char magic[8];
      std::uint64_t count;
    } header{};
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                               std::fclose);
    if (file == nullptr) throw std::runtime_error(path + ": " + std::strerror(errno));
    if (std::fread(&header, sizeof header, 1, file.get()) != 1 ||
        std::memcmp(header.magic, "lookup-1", sizeof header.magic) != 0) {
      throw std::runtime_error(path + ": not a table of make_table.py");
    }
    constexpr std::uint64_t kMost = std::uint64_t{1} << 30;  // 32 GiB
    if (header.count > kMost) throw std::runtime_error(path + ": over 2^30 keys");
    // Reads in parts: allocates memory for the file's real contents, not for the size that it claims.
    std::vector<Entry> entries;
    Entry part[4096];
    for (std::uint64_t left = header.count; left != 0;) {
      const std::size_t most = left < std::size(part) ? left : std::size(part);
      const std::size_t got = std::fread(part, sizeof(Entry), most, file.get());
      if (got == 0) throw std::runtime_error(path + ": ends before its last key");
      entries.insert(entries.end(), part, part + got);
      left -= got;
    }
    if (std::fgetc(file.get()) != EOF) throw std::runtime_error(path + ": goes on after its keys");
    return entries;
  }

  const Entry* table_;
  std::uint64_t mask_;
  std::uint32_t longest_;  ///< steps from an entry's place to where it is, at most
};

OFFLOAD_SERVICE_MODULE(Lookup);
