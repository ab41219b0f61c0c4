#include "tests/mock_llm/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

namespace tutti::mock_llm {
namespace {

// Each returns what is wrong, or nothing.
using Wrong = std::string;
using Apply = Wrong (*)(MockOptions&, std::string_view);

struct Flag {
  std::string_view name;
  std::string_view value;  // empty: a switch
  Apply apply;
  bool with_null;  // has an effect beside --null
  std::string_view help;
};

template <class Int>
Wrong read_int(std::string_view text, Int least, Int most, Int& out) {
  Int value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  if (code != std::errc{} || stop != end || value < least || value > most) {
    return fmt::format("must be a whole number within {} and {}", least, most);
  }
  out = value;
  return {};
}

Wrong read_on_off(std::string_view text, bool& out) {
  if (text != "on" && text != "off") {
    return "must be on or off";
  }
  out = text == "on";
  return {};
}

template <class T>
struct Named {
  std::string_view name;
  T value;
};

template <class T, std::size_t N>
Wrong read_word(std::string_view text, const Named<T> (&words)[N], T& out) {
  std::string known;
  for (const Named<T>& word : words) {
    if (word.name == text) {
      out = word.value;
      return {};
    }
    known += fmt::format("{}{}", known.empty() ? "" : ", ", word.name);
  }
  return fmt::format("must be one of {}", known);
}

Wrong read_distribution(std::string_view text, Quantity quantity, Distribution& out) {
  const auto value = parse_distribution(text, quantity);
  if (!value) {
    return value.error();
  }
  out = *value;
  return {};
}

Wrong add_port(MockOptions& o, std::string_view text) {
  std::uint16_t port = 0;
  if (Wrong wrong = read_int<std::uint16_t>(text, 0, 65535, port); !wrong.empty()) {
    return wrong;
  }
  if (port != 0 && std::find(o.ports.begin(), o.ports.end(), port) != o.ports.end()) {
    return fmt::format("port {} is given twice", port);
  }
  if (o.ports.size() == 256) {
    return "no more than 256 ports";
  }
  o.ports.push_back(port);
  return {};
}

Wrong add_ports(MockOptions& o, std::string_view text) {
  while (true) {
    const std::size_t comma = text.find(',');
    if (Wrong wrong = add_port(o, text.substr(0, comma)); !wrong.empty()) {
      return wrong;
    }
    if (comma == std::string_view::npos) {
      return {};
    }
    text.remove_prefix(comma + 1);
  }
}

Wrong set_path(std::string& out, std::string_view text) {
  if (text.empty()) {
    return "must name a file";
  }
  out = std::string(text);
  return {};
}

Wrong set_max_body(MockOptions& o, std::string_view text) {
  std::uint64_t scale = 1;
  if (!text.empty() && (text.back() == 'k' || text.back() == 'm')) {
    scale = text.back() == 'k' ? 1024 : 1024 * 1024;
    text.remove_suffix(1);
  }
  std::uint64_t value = 0;
  if (Wrong wrong = read_int<std::uint64_t>(text, 1, (1ULL << 30) / scale, value); !wrong.empty()) {
    return "must be 1 to 1073741824 bytes, e.g. 500k or 64m";
  }
  o.body_bytes_max = value * scale;
  return {};
}

Wrong set_idle(MockOptions& o, std::string_view text) {
  const auto ns = parse_duration_ns(text);
  if (!ns) {
    return ns.error();
  }
  o.idle_timeout_ns = *ns;
  return {};
}

Wrong add_fault(MockOptions& o, std::string_view text) {
  const auto rule = parse_fault_rule(text);
  if (!rule) {
    return rule.error();
  }
  if (o.faults.size() == 64) {
    return "no more than 64 fault rules";
  }
  o.faults.push_back(*rule);
  return {};
}

Wrong add_model(MockOptions& o, std::string_view text) {
  if (text.empty() || o.models.size() == 64) {
    return "must be a name, and no more than 64 of them";
  }
  o.models.emplace_back(text);
  return {};
}

Wrong set_reasoning_key(MockOptions& o, std::string_view text) {
  if (text != "reasoning_content" && text != "reasoning") {
    return "must be reasoning_content or reasoning";
  }
  o.reasoning_key = std::string(text);
  return {};
}

constexpr Named<TextKind> kTexts[] = {{"fixed", TextKind::kFixed},
                                      {"echo", TextKind::kEcho},
                                      {"words", TextKind::kWords},
                                      {"stamp", TextKind::kStamp}};
constexpr Named<UsageRule> kUsages[] = {{"asked", UsageRule::kAsked},
                                        {"off", UsageRule::kOff},
                                        {"on", UsageRule::kFinal},
                                        {"final", UsageRule::kFinal},
                                        {"continuous", UsageRule::kContinuous}};
constexpr Named<Framing> kFramings[] = {
    {"lf", Framing::kLf}, {"crlf", Framing::kCrlf}, {"cr", Framing::kCr}};
constexpr Named<bool> kGapDraws[] = {{"request", false}, {"token", true}};
constexpr Named<bool> kMaxTokens[] = {{"honoured", true}, {"ignored", false}};
constexpr Named<bool> kReplies[] = {{"text", false}, {"tool", true}};
constexpr Named<bool> kHeads[] = {{"first", false}, {"early", true}};
constexpr Named<bool> kSeedings[] = {{"arrival", false}, {"body", true}};

using View = std::string_view;

// A row without apply is a heading of the help.
constexpr Flag kFlags[] = {
    {"Where it listens", "", nullptr, true, ""},
    {"--host", "ADDR", [](MockOptions& o, View v) { return set_path(o.host, v); }, true,
     "address to bind (default 127.0.0.1)"},
    {"--port", "P", add_port, true, "one port, repeatable; 0 takes a free one (default 18000)"},
    {"--ports", "P,P,…", add_ports, true, "several ports at once; each counts apart in /metrics"},
    {"--port-file", "FILE", [](MockOptions& o, View v) { return set_path(o.port_file, v); }, true,
     "write one URL a line to FILE once all ports listen"},
    {"--tls-cert", "FILE", [](MockOptions& o, View v) { return set_path(o.tls_cert, v); }, true,
     "speak https: certificate chain in PEM (with --tls-key)"},
    {"--tls-key", "FILE", [](MockOptions& o, View v) { return set_path(o.tls_key, v); }, true,
     "its private key in PEM"},
    {"--idle-timeout", "D", set_idle, true,
     "close a kept connection after D without a request (default 0: never)"},
    {"--max-body", "SIZE", set_max_body, true, "refuse larger bodies with 413 (default 64m)"},

    {"When it answers", "", nullptr, true, ""},
    {"--ttft", "DIST",
     [](MockOptions& o, View v) { return read_distribution(v, Quantity::kDuration, o.ttft); },
     false, "wait before the first token (default 50ms)"},
    {"--gap", "DIST",
     [](MockOptions& o, View v) { return read_distribution(v, Quantity::kDuration, o.gap); }, false,
     "wait between content events (default 10ms)"},
    {"--gap-draw", "request|token",
     [](MockOptions& o, View v) { return read_word(v, kGapDraws, o.gap_per_token); }, false,
     "draw the gap once a request (default) or anew for each event"},
    {"--max-concurrency", "M",
     [](MockOptions& o, View v) { return read_int(v, 0U, 10'000'000U, o.concurrency_max); }, false,
     "serve M requests at once, the others queue before their TTFT (default 0: no limit)"},
    {"--seed", "N",
     [](MockOptions& o, View v) { return read_int<std::uint64_t>(v, 0, UINT64_MAX, o.seed); },
     false, "seed of every draw, fault shares included (default 42)"},
    {"--per-request-seed", "arrival|body",
     [](MockOptions& o, View v) { return read_word(v, kSeedings, o.seed_from_body); }, false,
     "seed a request by its place in the order of arrival (default) or by a hash of its body"},

    {"What it answers", "", nullptr, true, ""},
    {"--tokens", "DIST",
     [](MockOptions& o, View v) {
       o.tokens_given = true;
       return read_distribution(v, Quantity::kCount, o.tokens);
     },
     false,
     "output length in tokens, one token is one word (default 64; echo: the prompt's words)"},
    {"--max-tokens", "honoured|ignored",
     [](MockOptions& o, View v) { return read_word(v, kMaxTokens, o.honour_max_tokens); }, false,
     "whether max_completion_tokens / max_tokens cap the output (default honoured)"},
    {"--tokens-per-chunk", "K",
     [](MockOptions& o, View v) { return read_int(v, 1U, 1'000'000U, o.tokens_per_chunk); }, false,
     "words in a content event (default 1)"},
    {"--text", "fixed|echo|words|stamp",
     [](MockOptions& o, View v) { return read_word(v, kTexts, o.text); }, false,
     "one constant word (default), the last user message's words, words drawn by seed, or for each "
     "word the CLOCK_MONOTONIC nanoseconds just before its send"},
    {"--reply", "text|tool",
     [](MockOptions& o, View v) { return read_word(v, kReplies, o.tool_call); }, false,
     "chat answers are text (default) or one tool call"},
    {"--reasoning-tokens", "N",
     [](MockOptions& o, View v) { return read_int(v, 0U, 1'000'000U, o.reasoning_tokens); }, false,
     "chat: the first N tokens are reasoning (default 0)"},
    {"--reasoning-key", "KEY", set_reasoning_key, false,
     "reasoning_content (default) or reasoning"},
    {"--role-chunk", "on|off", [](MockOptions& o, View v) { return read_on_off(v, o.role_chunk); },
     false, "chat streams begin with a role-only event (default on)"},
    {"--head", "first|early",
     [](MockOptions& o, View v) { return read_word(v, kHeads, o.early_head); }, false,
     "send headers and role event with the first token (default) or before the TTFT wait"},
    {"--usage", "asked|off|final|continuous",
     [](MockOptions& o, View v) { return read_word(v, kUsages, o.usage); }, false,
     "usage in streams: if stream_options asks (default), never, in a last event (also: on), or in "
     "each"},
    {"--framing", "lf|crlf|cr",
     [](MockOptions& o, View v) { return read_word(v, kFramings, o.framing); }, false,
     "line ends of the event stream (default lf)"},
    {"--stamp", "",
     [](MockOptions& o, View) {
       o.stamp = true;
       return Wrong{};
     },
     false, "add \"tutti_sent_ns\" to every event: CLOCK_MONOTONIC just before its send"},
    {"--model", "NAME", add_model, true,
     "name for /v1/models and for requests without one, repeatable (default mock-model)"},
    {"--strict-model", "",
     [](MockOptions& o, View) {
       o.strict_model = true;
       return Wrong{};
     },
     false, "answer 404 to a model not named by --model (default: any name is served)"},
    {"--null", "",
     [](MockOptions& o, View) {
       o.null_server = true;
       return Wrong{};
     },
     true, "null server: every POST gets one ready JSON answer of ~200 bytes, bodies are not read"},
    {"--spin", "",
     [](MockOptions& o, View) {
       o.spin = true;
       return Wrong{};
     },
     true, "never sleep, so that no client pays for waking this process; takes a core"},

    {"What goes wrong", "", nullptr, true, ""},
    {"--fault", "KIND[:N][@WHEN]", add_fault, false,
     "repeatable; the first rule that matches wins"},
};

const Flag* find_flag(std::string_view name) {
  for (const Flag& flag : kFlags) {
    if (flag.apply != nullptr && flag.name == name) {
      return &flag;
    }
  }
  return nullptr;
}

void check_together(const std::vector<const Flag*>& given, ReadOptions& out) {
  MockOptions& o = out.options;
  const auto say = [&](std::string_view flag, std::string_view value, std::string remedy) {
    out.problems.push_back(
        {"tutti-mock", std::string(flag), std::string(value), std::move(remedy)});
  };
  if (o.tls_cert.empty() != o.tls_key.empty()) {
    say(o.tls_cert.empty() ? "--tls-cert" : "--tls-key", "",
        "is missing: https needs both --tls-cert and --tls-key");
  }
  if (o.null_server) {
    for (const Flag* flag : given) {
      if (!flag->with_null) {
        say(flag->name, "", "has no effect with --null, which gives one ready answer; drop either");
      }
    }
  }
  if (o.strict_model && o.models.empty()) {
    say("--strict-model", "", "needs at least one --model");
  }
  if (o.ports.empty()) {
    o.ports.push_back(18000);
  }
  if (o.models.empty()) {
    o.models.emplace_back("mock-model");
  }
}

}  // namespace

ReadOptions read_options(const std::vector<std::string>& arguments) {
  ReadOptions out;
  std::vector<const Flag*> given;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    if (argument == "--help" || argument == "-h") {
      out.wants_help = true;
      continue;
    }
    if (argument == "--version") {
      out.wants_version = true;
      continue;
    }
    const std::size_t equals = argument.find('=');
    const std::string_view name = argument.substr(0, equals);
    const Flag* flag = find_flag(name);
    if (flag == nullptr) {
      out.problems.push_back({"tutti-mock", std::string(name), "",
                              "is not an option; tutti-mock --help lists them all"});
      // Its value, if it has one, is not another mistake.
      const bool has_value = argument.substr(0, 2) == "--" && equals == std::string_view::npos &&
                             i + 1 < arguments.size() && arguments[i + 1].rfind("--", 0) != 0;
      i += has_value ? 1 : 0;
      continue;
    }
    std::string_view value;
    if (equals != std::string_view::npos) {
      value = argument.substr(equals + 1);
    } else if (!flag->value.empty()) {
      if (i + 1 == arguments.size()) {
        out.problems.push_back(
            {"tutti-mock", std::string(name), "", fmt::format("needs a value: {}", flag->value)});
        continue;
      }
      value = arguments[++i];
    }
    given.push_back(flag);
    Wrong wrong = flag->value.empty() && equals != std::string_view::npos
                      ? Wrong("is a switch and takes no value")
                      : flag->apply(out.options, value);
    if (!wrong.empty()) {
      out.problems.push_back(
          {"tutti-mock", std::string(name), std::string(value), std::move(wrong)});
    }
  }
  check_together(given, out);
  return out;
}

std::string problem_line(const base::Problem& problem) {
  const std::string quoted = fmt::format("\"{}\"", problem.value);
  const bool says_it = problem.remedy.rfind(quoted, 0) == 0;
  const std::string value = problem.value.empty() || says_it ? "" : ": " + quoted;
  return fmt::format("{}: {}{}: {}", problem.where, problem.field, value, problem.remedy);
}

std::string options_help() {
  std::string out =
      "tutti-mock: an OpenAI-style server that waits, answers and fails as told\n\n"
      "  tutti-mock --port 18000 --ttft 50ms --gap 10ms --tokens 64\n"
      "  tutti-mock --ports 18000,18001 --ttft lognormal:200ms:0.5 --tokens uniform:10:200\n"
      "  tutti-mock --port 0 --fault status:503@10% --fault reset-after:5@every:50 --seed 7\n\n"
      "Serves POST /v1/chat/completions, /v1/completions, SGLang's /generate (streams and single\n"
      "documents) and /v1/videos/generations, GET /v1/models, /health and /metrics (Prometheus\n"
      "text). It prints `listening URL` for each port, runs until SIGINT or SIGTERM, and then\n"
      "prints one line of totals. One thread.\n";
  for (const Flag& flag : kFlags) {
    if (flag.apply == nullptr) {
      out += fmt::format("\n{}:\n", flag.name);
      continue;
    }
    const std::string left =
        fmt::format("{}{}{}", flag.name, flag.value.empty() ? "" : " ", flag.value);
    out += left.size() <= 26 ? fmt::format("  {:<27}{}\n", left, flag.help)
                             : fmt::format("  {}\n  {:<27}{}\n", left, "", flag.help);
  }
  out += "\n  KIND:\n" + fault_help();
  out +=
      "\n  WHEN (default: every request): @10% a share of requests, @every:7 each 7th, @at:5 or\n"
      "  @at:5-9 by number; requests count from 1. A single request can ask for a fault itself,\n"
      "  without WHEN, by the header `x-tutti-fault: KIND[:N]` or the body field \"tutti_fault\".\n"
      "  For a single document, reset-after, truncate and stall deliver half of it, malformed "
      "breaks\n"
      "  its JSON, error-event and named-error answer 200 with an error object; end and no-done "
      "do\n"
      "  nothing.\n"
      "\nDIST: a plain value (50ms, 64), uniform:A:B, lognormal:MEAN:CV or exponential:MEAN.\n"
      "Durations take ns, us, ms, s or m. A request draws its length, TTFT and gap from its own\n"
      "seed; with --per-request-seed body the same bodies get the same answers in any order.\n"
      "A single-document answer comes after TTFT + (events - 1) x gap, as its stream would end.\n"
      "A client that closes or half-closes its side cancels its request.\n"
      "\n  --help, --version\n";
  return out;
}

}  // namespace tutti::mock_llm
