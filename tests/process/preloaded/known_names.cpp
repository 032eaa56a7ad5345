/// Preloaded into a program, resolves names by the file that OFFLOAD_NAMES names, which is read
/// each time: lines of a name and its addresses. Every other name is unknown, and no name server is
/// asked.
#include <dlfcn.h>
#include <netdb.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

extern "C" int getaddrinfo(const char* host, const char* service, const addrinfo* hints,
                           addrinfo** list) {
  static const auto real =
      reinterpret_cast<decltype(&::getaddrinfo)>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  addrinfo numeric = hints != nullptr ? *hints : addrinfo{};
  numeric.ai_flags |= AI_NUMERICHOST;
  if (real(host, service, &numeric, list) == 0) return 0;
  const char* const path = std::getenv("OFFLOAD_NAMES");
  std::ifstream file(path != nullptr ? path : "");
  addrinfo** end = list;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word;
    if (!(words >> word) || host == nullptr || word != host) continue;
    // glibc's freeaddrinfo() frees element by element.
    while (words >> word) {
      if (real(word.c_str(), service, &numeric, end) != 0) std::abort();
      while (*end != nullptr) end = &(*end)->ai_next;
    }
  }
  return end != list ? 0 : EAI_NONAME;
}
