// Runs a fuzz target inside an ordinary test: every file of its corpus, then random mutations of
// them, the same ones each time. A target is tests/fuzz/NAME_fuzz.cpp with the one function
// LLVMFuzzerTestOneInput, as libFuzzer wants it; it ends the program (TUTTI_CHECK) when a promise
// is broken. Its seeds are the files of tests/fuzz/corpus/NAME. A test uses it so:
//
//     #define LLVMFuzzerTestOneInput fuzz_hostlist
//     #include "tests/fuzz/hostlist_fuzz.cpp"
//     #undef LLVMFuzzerTestOneInput
//     TEST(FuzzCorpus, Hostlist) { fuzz::replay("hostlist", fuzz_hostlist); }
//
// TUTTI_FUZZ_MUTATIONS and TUTTI_FUZZ_SEED in the environment ask for a longer or another run. The
// input in progress is printed when the program ends, so that it can become a seed.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

namespace tutti::fuzz {

using Target = int (*)(const std::uint8_t* data, std::size_t size);

struct ReplayOptions {
  std::size_t mutations = 2000;
  std::uint32_t seed = 1;
  std::size_t max_size = 4096;
};

namespace detail {
// What the target works on, for print_input(): a signal handler can reach nothing else.
inline const std::string* input_in_progress = nullptr;

// Only write-like calls of stdio on stderr, for the program is ending anyway.
inline void print_input(int signal) {
  if (input_in_progress) {
    std::fputs("fuzz: the program ended on this input (C string): \"", stderr);
    for (char c : *input_in_progress)
      std::fprintf(stderr, "\\x%02x", static_cast<unsigned char>(c));
    std::fputs("\"\n", stderr);
  }
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

inline void run(Target target, const std::string& input) {
  // A block of its own size, so that a sanitizer sees one byte too many.
  std::vector<std::uint8_t> exact(input.begin(), input.end());
  input_in_progress = &input;
  target(exact.data(), exact.size());
  input_in_progress = nullptr;
}

// One to four changes: a flipped bit, a byte put in, taken out or replaced, a piece doubled, taken
// out or taken from another seed.
inline std::string mutate(std::string text, const std::vector<std::string>& seeds,
                          std::mt19937& random) {
  static constexpr char kLikely[] = "0123456789,:;-+*&|()[]{}%@_=.x \"\\\n\0\xFF";
  for (std::uint32_t i = 0, n = 1 + random() % 4; i < n; ++i) {
    std::size_t at = random() % (text.size() + 1);
    std::size_t length = std::min<std::size_t>(random() % 8, text.size() - at);
    char byte =
        random() % 2 ? kLikely[random() % (sizeof kLikely - 1)] : static_cast<char>(random());
    switch (random() % 7) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << random() % 8));
        break;
      case 1:
        text.insert(text.begin() + static_cast<std::ptrdiff_t>(at), byte);
        break;
      case 2:
        if (at < text.size()) text[at] = byte;
        break;
      case 3:
        text.erase(at, length);
        break;
      case 4: {
        std::string piece = text.substr(at, length);
        text.insert(at, piece);
        break;
      }
      case 5: {
        const std::string& other = seeds[random() % seeds.size()];
        std::size_t from = random() % (other.size() + 1);
        text.insert(at, other, from, random() % 16);
        break;
      }
      default: {
        // A number at the edge of its type.
        static constexpr const char* kEdges[] = {"0",
                                                 "-1",
                                                 "65536",
                                                 "4294967295",
                                                 "4294967296",
                                                 "9223372036854775807",
                                                 "18446744073709551616"};
        text.insert(at, kEdges[random() % std::size(kEdges)]);
      }
    }
  }
  return text;
}

inline std::uint32_t number_from_environment(const char* name, std::size_t fallback) {
  const char* text = std::getenv(name);
  return static_cast<std::uint32_t>(text ? std::strtoul(text, nullptr, 10) : fallback);
}
}  // namespace detail

// The files of tests/fuzz/corpus/NAME in the order of their names.
inline std::vector<std::string> corpus(const std::string& name) {
  std::vector<std::filesystem::path> paths;
  std::error_code error;
  std::filesystem::path folder =
      std::filesystem::path(TUTTI_SOURCE_DIR) / "tests" / "fuzz" / "corpus" / name;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> seeds;
  for (const auto& path : paths) {
    std::ifstream in(path, std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return seeds;
}

inline void replay(const std::string& name, Target target, ReplayOptions options = {}) {
  std::vector<std::string> seeds = corpus(name);
  ASSERT_FALSE(seeds.empty()) << "no seeds in tests/fuzz/corpus/" << name;
  auto old_abort = std::signal(SIGABRT, detail::print_input);
  auto old_segv = std::signal(SIGSEGV, detail::print_input);
  detail::run(target, "");
  for (const std::string& seed : seeds) detail::run(target, seed);
  std::mt19937 random(detail::number_from_environment("TUTTI_FUZZ_SEED", options.seed));
  std::size_t mutations =
      detail::number_from_environment("TUTTI_FUZZ_MUTATIONS", options.mutations);
  for (std::size_t i = 0; i < mutations; ++i) {
    std::string input = detail::mutate(seeds[random() % seeds.size()], seeds, random);
    if (input.size() > options.max_size) input.resize(options.max_size);
    detail::run(target, input);
  }
  std::signal(SIGABRT, old_abort);
  std::signal(SIGSEGV, old_segv);
}

}  // namespace tutti::fuzz
