#pragma once

// What a user can set on the command line of tutti-mock, as checked values, and the reader that
// turns argv into them. Every problem is found in one pass. Cold path; main thread.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "tests/mock_llm/draw.h"
#include "tests/mock_llm/fault.h"

namespace tutti::mock_llm {

enum class TextKind : std::uint8_t { kFixed, kEcho, kWords, kStamp };
enum class UsageRule : std::uint8_t { kAsked, kOff, kFinal, kContinuous };
enum class Framing : std::uint8_t { kLf, kCrlf, kCr };

struct MockOptions {
  std::string host = "127.0.0.1";
  std::vector<std::uint16_t> ports;
  std::string port_file;
  std::string tls_cert;
  std::string tls_key;
  std::int64_t idle_timeout_ns = 0;  // 0: never
  std::size_t body_bytes_max = 64 << 20;

  Distribution ttft = Distribution::fixed_ns(50'000'000);
  Distribution gap = Distribution::fixed_ns(10'000'000);
  Distribution tokens = Distribution::fixed_count(64);
  bool tokens_given = false;  // an echo without --tokens is as long as its prompt
  bool gap_per_token = false;
  std::uint64_t seed = 42;
  bool seed_from_body = false;
  std::uint32_t concurrency_max = 0;  // 0: no limit

  std::vector<std::string> models;  // never empty once read
  bool strict_model = false;
  TextKind text = TextKind::kFixed;
  bool tool_call = false;
  bool honour_max_tokens = true;
  std::uint32_t tokens_per_chunk = 1;
  std::uint32_t reasoning_tokens = 0;
  std::string reasoning_key = "reasoning_content";
  bool role_chunk = true;
  bool early_head = false;
  UsageRule usage = UsageRule::kAsked;
  Framing framing = Framing::kLf;
  bool stamp = false;
  bool null_server = false;
  bool spin = false;

  std::vector<FaultRule> faults;
};

struct ReadOptions {
  MockOptions options;
  bool wants_help = false;
  bool wants_version = false;
  base::Problems problems;
};

// `arguments` without the program's name.
ReadOptions read_options(const std::vector<std::string>& arguments);

std::string options_help();

// `tutti-mock: --port: "70000": must be …`
std::string problem_line(const base::Problem& problem);

}  // namespace tutti::mock_llm
