#include <algorithm>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/module/payload.hpp"
#include "kernels/module/reduce.hpp"
#include "kernels/module/service_module.hpp"

using offload::kernels::Block;
using offload::kernels::reduce_min;
using offload::kernels::reduce_or;
using offload::kernels::Request;
using offload::kernels::ServiceSetup;

/// The bytes that each position of a pattern accepts.
using Pattern = std::vector<std::vector<bool>>;

/// Reads a pattern as README.md has it. Throws std::invalid_argument.
class PatternReader {
 public:
  explicit PatternReader(const std::string& text) : text_(text) {}

  Pattern read() {
    Pattern pattern;
    while (!ended()) {
      pattern.emplace_back(256, false);
      read_position(pattern.back());
    }
    return pattern;
  }

 private:
  using Bytes = std::vector<bool>;
  static constexpr int kClass = 256;  ///< what a member is that is no single byte

  void read_position(Bytes& bytes) {
    if (takes('.')) return bytes.flip();
    if (takes('[')) return read_bracket(bytes);
    if (std::string("*+?{}()|^$]").find(text_[at_]) != std::string::npos) {
      fail(std::string("'") + text_[at_] + "' is not supported; \\" + text_[at_] +
           " is the character");
    }
    if (const int byte = member(bytes); byte != kClass) set(bytes, byte);
  }

  /// Reads a bracket expression, after the '['.
  void read_bracket(Bytes& bytes) {
    const bool negated = takes('^');
    do {
      const int first = member(bytes);
      int last = first;
      if (first != kClass && text_.compare(at_, 1, "-") == 0 && text_.compare(at_, 2, "-]") != 0) {
        ++at_;
        last = member(bytes);
        if (last == kClass || last < first) fail("an invalid range");
      }
      for (int byte = first; first != kClass && byte <= last; ++byte) set(bytes, byte);
    } while (!takes(']'));
    if (negated) bytes.flip();
  }

  /// A character, or what stands behind a backslash; kClass if that is a class, whose bytes are
  /// set.
  int member(Bytes& bytes) {
    const char character = next();
    if (character != '\\') return static_cast<std::uint8_t>(character);
    const char escaped = next();
    const std::string letters = "nrtfv";
    if (const auto found = letters.find(escaped); found != std::string::npos) {
      return "\n\r\t\f\v"[found];
    }
    if (escaped == 'x') {
      const int high = hexadecimal(next());
      return high * 16 + hexadecimal(next());
    }
    if (std::string("dDwWsS").find(escaped) != std::string::npos) {
      for (int byte = 0; byte < 256; ++byte) {
        if (is_of_class(byte, escaped)) set(bytes, byte);
      }
      return kClass;
    }
    if (is_of_class(static_cast<std::uint8_t>(escaped), 'w')) {
      fail(std::string("\\") + escaped + " is not supported");
    }
    return static_cast<std::uint8_t>(escaped);
  }

  int hexadecimal(char digit) const {
    const auto value = std::string("0123456789abcdefABCDEF").find(digit);
    if (value == std::string::npos) fail("\\x takes two hexadecimal digits");
    return static_cast<int>(value < 16 ? value : value - 6);
  }

  /// Returns whether it is in the class, as in Python's re for bytes: ASCII only.
  static bool is_of_class(int byte, char name) {
    const bool digit = byte >= '0' && byte <= '9';
    const int lower = byte | 0x20;
    switch (name) {
      case 'd': return digit;
      case 'w': return digit || byte == '_' || (byte < 128 && lower >= 'a' && lower <= 'z');
      case 's': return byte == ' ' || (byte >= '\t' && byte <= '\r');
      default: return !is_of_class(byte, static_cast<char>(name | 0x20));
    }
  }

  static void set(Bytes& bytes, int byte) { bytes[static_cast<std::size_t>(byte)] = true; }

  bool ended() const { return at_ == text_.size(); }
  bool takes(char character) {
    if (ended() || text_[at_] != character) return false;
    ++at_;
    return true;
  }
  char next() {
    if (ended()) fail("it ends too early");
    return text_[at_++];
  }
  [[noreturn]] void fail(const std::string& why) const {
    throw std::invalid_argument("pattern '" + text_ + "': " + why);
  }

  std::string text_;
  std::size_t at_ = 0;
};

/// Answers which patterns the request has: u64, bit i for pattern i | u32 offset of the match that
/// begins first, 2^32 - 1 if there is none. Little endian.
///
/// Shift-and (Baeza-Yates and Gonnet): a bit for each position of each pattern, in words of 64
/// bits. As a match is never longer than the longest pattern, each lane takes a stretch of the
/// message, and begins earlier by that length.
struct Grep {
  static constexpr const char* kName = "grep";

  OFFLOAD_HOST_DEVICE static std::uint32_t response_length(std::uint32_t) { return 12; }

  template <class Group, class Response>
  OFFLOAD_HOST_DEVICE void operator()(const Group& group, const Request& request,
                                      const Response& response) const {
    // Stretches of whole blocks: neighbouring lanes do not share one.
    const std::uint32_t length = request.length();
    const std::uint32_t blocks = (length + kBlock - 1) / kBlock;
    const std::uint32_t stretch = (blocks + group.size() - 1) / group.size() * kBlock;
    const std::uint32_t begin = group.lane() * stretch;
    Found found{0, kNowhere};
    if (begin < length) {
      const std::uint32_t end = length - begin < stretch ? length : begin + stretch;
      for (std::uint32_t word = 0; word < words_; ++word) {
        search(table_[word], request, begin, end, found);
      }
    }
    found.patterns = reduce_or(group, found.patterns);
    found.first = reduce_min(group, found.first);
    response.fill(group, [=](std::uint32_t) {
      return Block{{static_cast<std::uint32_t>(found.patterns),
                    static_cast<std::uint32_t>(found.patterns >> 32), found.first, 0}};
    });
  }

  /// Makes the service from --service-option pattern=PATTERN, or patterns=FILE with one a line.
  /// Throws std::exception.
  static Grep make(ServiceSetup& setup) {
    std::vector<std::string> patterns;
    const char* const one = setup.find("pattern");
    const char* const file = setup.find("patterns");
    if ((one != nullptr) == (file != nullptr)) {
      throw std::invalid_argument("it needs --service-option pattern=PATTERN or patterns=FILE");
    }
    if (one != nullptr) patterns.emplace_back(one);
    if (file != nullptr) patterns = lines_of(file);
    if (patterns.empty() || patterns.size() > kMostPatterns) {
      throw std::invalid_argument("it takes 1 to 64 patterns, not " +
                                  std::to_string(patterns.size()));
    }
    return compile(patterns, setup);
  }

 private:
  static constexpr std::uint32_t kBlock = sizeof(Block);
  static constexpr std::uint32_t kMostPatterns = 64;
  static constexpr std::uint32_t kPositions = 64;  // of a word: a pattern has no more
  static constexpr std::uint32_t kNowhere = ~0U;

  struct Found {
    std::uint64_t patterns;
    std::uint32_t first;
  };

  /// Patterns that have their positions in one word, the first of each in its lowest bits.
  struct Word {
    std::uint64_t of_byte[256];  ///< positions that a byte can have
    std::uint64_t firsts;        ///< first positions
    std::uint64_t lasts;
    std::uint8_t pattern[kPositions];  ///< by last position: which it is,
    std::uint8_t length[kPositions];   ///< and how long
    std::uint32_t longest;
  };

  /// Adds the matches that end in [begin, end), and perhaps some before. `begin`: a multiple of a
  /// block's bytes.
  OFFLOAD_HOST_DEVICE static void search(const Word& word, const Request& request,
                                         std::uint32_t begin, std::uint32_t end, Found& found) {
    const std::uint64_t firsts = word.firsts;
    const std::uint32_t before = word.longest - 1;
    std::uint64_t positions = 0;  // up to which a pattern has matched, to the byte before
    std::uint64_t left = word.lasts;
    for (std::uint32_t at = begin < before ? 0 : (begin - before) / kBlock * kBlock;
         at < end && left != 0; at += kBlock) {
      const Block block = request.block(at);
      const std::uint32_t bytes = end - at < kBlock ? end - at : kBlock;
      for (std::uint32_t i = 0; i < bytes; ++i) {
        positions = (positions << 1 | firsts) & word.of_byte[byte_of(block, i)];
        if ((positions & left) != 0) note(word, at + i, positions, left, found);
      }
    }
  }

  /// Notes the patterns that end at offset `at` for the first time. Later matches begin later.
  OFFLOAD_HOST_DEVICE static void note(const Word& word, std::uint32_t at, std::uint64_t positions,
                                       std::uint64_t& left, Found& found) {
    const std::uint64_t ended = positions & left;
    left &= ~ended;
    for (std::uint32_t i = 0; i < kPositions; ++i) {
      if ((ended >> i & 1U) == 0) continue;
      found.patterns |= std::uint64_t{1} << word.pattern[i];
      const std::uint32_t from = at + 1 - word.length[i];
      if (from < found.first) found.first = from;
    }
  }

  OFFLOAD_HOST_DEVICE static std::uint32_t byte_of(const Block& block, std::uint32_t index) {
#if defined(__CUDA_ARCH__)
    // Selects by comparing: with an index that is not constant the block would leave the registers.
    const std::uint32_t low = index & 4U ? block.words[1] : block.words[0];
    const std::uint32_t high = index & 4U ? block.words[3] : block.words[2];
    return (index & 8U ? high : low) >> (8 * (index & 3U)) & 0xffU;
#else
    return block.words[index / 4] >> (8 * (index % 4)) & 0xffU;
#endif
  }

  static std::vector<std::string> lines_of(const std::string& path) {
    std::ifstream file(path);
    if (!file) throw std::runtime_error("cannot read " + path);
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    if (!file.eof()) throw std::runtime_error("cannot read " + path);
    return lines;
  }

  /// Packs each pattern into the first word that has room.
  static Grep compile(const std::vector<std::string>& texts, const ServiceSetup& setup) {
    std::vector<Word> words;
    std::vector<std::size_t> used;
    for (std::size_t number = 0; number < texts.size(); ++number) {
      const Pattern pattern = PatternReader(texts[number]).read();
      if (pattern.empty() || pattern.size() > kPositions) {
        throw std::invalid_argument("pattern '" + texts[number] + "' has " +
                                    std::to_string(pattern.size()) + " positions, not 1 to 64");
      }
      std::size_t word = 0;
      while (word < words.size() && used[word] + pattern.size() > kPositions) ++word;
      if (word == words.size()) {
        words.push_back(Word{});
        used.push_back(0);
      }
      add(words[word], used[word], pattern, static_cast<std::uint8_t>(number));
      used[word] += pattern.size();
    }
    Grep made{};
    made.table_ = setup.copy(words);
    made.words_ = static_cast<std::uint32_t>(words.size());
    return made;
  }

  static void add(Word& word, std::size_t place, const Pattern& pattern, std::uint8_t number) {
    const std::size_t last = place + pattern.size() - 1;
    word.firsts |= std::uint64_t{1} << place;
    word.lasts |= std::uint64_t{1} << last;
    word.pattern[last] = number;
    word.length[last] = static_cast<std::uint8_t>(pattern.size());
    word.longest = std::max(word.longest, static_cast<std::uint32_t>(pattern.size()));
    for (std::size_t i = 0; i < pattern.size(); ++i) {
      for (std::size_t byte = 0; byte < 256; ++byte) {
        if (pattern[i][byte]) word.of_byte[byte] |= std::uint64_t{1} << (place + i);
      }
    }
  }

  const Word* table_;
  std::uint32_t words_;
};

OFFLOAD_SERVICE_MODULE(Grep);
