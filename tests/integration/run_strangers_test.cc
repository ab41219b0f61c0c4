// Strangers at the coordinator's and the agent's door: frames of another protocol version, garbage,
// too much, and floods of it. Refused or bounded, logged once, and the run goes on. And no secret
// in any file, log, command line or environment of ours.

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "common/wire/codec.h"
#include "common/wire/envelope.h"
#include "common/wire/messages.h"
#include "common/wire/sockets.h"
#include "tests/support/mortal_mock.h"
#include "tests/support/program.h"
#include "tests/support/scripted_server.h"

namespace tutti::testing_support {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::vector<std::string> kPace{"--ttft", "20ms", "--gap", "2ms", "--tokens", "8"};
constexpr std::uint16_t kOldVersion = wire::kProtocolVersion - 1;

// A frame of ours as one of the version before would have sent it.
std::string of_old_version(std::string bytes) {
  bytes[4] = static_cast<char>(kOldVersion & 0xFF);
  bytes[5] = static_cast<char>(kOldVersion >> 8);
  return bytes;
}

std::string hello_frame(base::Id from) {
  const auto hello = wire::encode(wire::Message(wire::Hello{}));
  return wire::encode_envelope({from, {}, 1, 0, hello.plane, hello.bytes});
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++n;
  }
  return n;
}

wire::DialSocket dial(const wire::SocketContext& context, const std::string& address) {
  auto socket = wire::DialSocket::open(context, address, {});
  EXPECT_TRUE(socket.has_value());
  return std::move(*socket);
}

// What comes within the time, up to `most`.
std::vector<std::string> hear(wire::DialSocket& socket, std::size_t most, int timeout_ms) {
  std::vector<std::string> out;
  std::string bytes;
  for (int waited = 0; waited < timeout_ms && out.size() < most; waited += 10) {
    while (socket.receive(bytes)) {
      out.push_back(bytes);
    }
    poll(nullptr, 0, 10);
  }
  return out;
}

void send_many(wire::DialSocket& socket, const std::string& bytes, int times) {
  for (int i = 0, patience = 0; i < times && patience < 2000;) {
    if (socket.send(bytes) == wire::SendResult::kSent) {
      ++i;
    } else {
      ++patience;
      poll(nullptr, 0, 1);
    }
  }
}

// Plain TCP that says `words` and stays open.
int call_plainly(const std::string& address, const std::string& words) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port =
      htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  EXPECT_EQ(::send(fd, words.data(), words.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(words.size()));
  return fd;
}

std::vector<std::string> benchmark(const std::string& base, const std::string& url, int samples,
                                   const std::vector<std::string>& more) {
  return words_of({.data = write_prompts(base, 50),
                   .folder = base + "/run",
                   .urls = {url},
                   .queries = static_cast<std::size_t>(samples),
                   .more = more});
}

TEST(Strangers, OldVersionsGarbageAndFloodsAreRefusedOnceAndTheRunGoesOn) {
  const MortalMock mock(kPace);
  const std::string base = fresh_folder("strangers");
  const std::string address = fmt::format("tcp://127.0.0.1:{}", free_port());
  Program run(benchmark(base, mock.url(), 2500, {"--listen", address, "--expect-agents", "1"}));
  Program agent({"tutti-agent", "--connect", address, "--cache-dir", base + "/cache", "--spool-dir",
                 base + "/spool"});
  ASSERT_TRUE(mock.reaches("tutti_mock_finished_total", 100)) << run.output() << agent.output();

  const wire::SocketContext context;
  auto old = dial(context, address);
  send_many(old, of_old_version(hello_frame({7, 7})), 300);
  const auto answers = hear(old, 2, 3000);
  ASSERT_EQ(answers.size(), 1U) << "said once, or two versions would talk for ever";
  EXPECT_TRUE(wire::decode_envelope(answers[0]).has_value()) << "of this side's version";

  auto flood = dial(context, address);
  for (int size = 1; size < 400; ++size) {
    flood.send(std::string(static_cast<std::size_t>(size), 'x'));
  }
  std::string lying = hello_frame({8, 8});
  lying.back() = static_cast<char>(lying.back() ^ 1);
  lying += "more than it announces";
  send_many(flood, lying, 1000);
  send_many(flood,
            wire::encode_envelope({{9, 9}, {}, 1, 0, wire::Plane::kControl, "\xFF\xFF junk"}),
            1000);
  send_many(flood, std::string(200, 'y'), 100'000);
  auto huge = dial(context, address);
  huge.send(std::string(wire::kEnvelopeBytesMax + 1, 'z'));  // its connection is broken for it
  std::vector<int> plain;
  for (int i = 0; i < 200; ++i) {
    plain.push_back(call_plainly(address, i % 2 == 0 ? "GET / HTTP/1.1\r\n\r\n" : "\xFF"));
  }

  ASSERT_EQ(run.wait(28'000), 0) << run.output() << agent.output();
  EXPECT_EQ(agent.wait(10'000), 0) << agent.output();
  for (const int fd : plain) {
    close(fd);
  }
  const json summary = read_json(base + "/run/performance/result_summary.json");
  EXPECT_EQ(summary["verdict"]["valid"], true) << summary["verdict"];
  EXPECT_EQ(summary["n_samples_completed"], 2500);
  const std::string& said = run.output();
  EXPECT_EQ(count(said, fmt::format("the peer speaks protocol version {}, this side {}",
                                    kOldVersion, wire::kProtocolVersion)),
            1U)
      << said;
  EXPECT_EQ(count(said, "bytes that do not begin as a tutti frame"), 1U) << said;
  EXPECT_EQ(count(said, "payload bytes, "), 1U) << said;
  EXPECT_LE(count(said, "refused a frame"), 5U) << said;
}

// The other way round: the coordinator is the old one.
TEST(Strangers, AnAgentLeavesACoordinatorOfAnotherVersionAtOnceAndSaysBoth) {
  const wire::SocketContext context;
  auto listener = wire::ListenSocket::open(context, "tcp://127.0.0.1:*", {});
  ASSERT_TRUE(listener.has_value());
  Program agent({"tutti-agent", "--connect", listener->endpoint(), "--wait", "20"});
  std::string peer;
  std::string bytes;
  for (int i = 0; i < 1000 && !listener->receive(peer, bytes); ++i) {
    poll(nullptr, 0, 10);
  }
  ASSERT_FALSE(bytes.empty()) << agent.output();
  listener->send(
      peer, of_old_version(wire::encode_envelope({{5, 5}, {}, 0, 0, wire::Plane::kControl, ""})));
  EXPECT_EQ(agent.wait(10'000), 3) << agent.output();
  EXPECT_THAT(agent.output(), HasSubstr(fmt::format("speaks protocol version {}, this side {}",
                                                    kOldVersion, wire::kProtocolVersion)));
  EXPECT_THAT(agent.output(), HasSubstr("no coordinator took this agent"));
}

TEST(Strangers, AListeningAgentTellsAnOldCoordinatorItsVersionAndServesTheNext) {
  const MortalMock mock(kPace);
  const std::string base = fresh_folder("strangers-listening");
  const std::string address = fmt::format("tcp://127.0.0.1:{}", free_port());
  Program agent({"tutti-agent", "--listen", address, "--cache-dir", base + "/cache", "--spool-dir",
                 base + "/spool"});
  ASSERT_TRUE(agent.says("listening at", 20'000)) << agent.output();
  const wire::SocketContext context;
  auto old = dial(context, address);
  send_many(old, of_old_version(hello_frame({7, 7})), 100);
  send_many(old, std::string(100, 'x'), 5000);
  const auto answers = hear(old, 2, 2000);
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_TRUE(wire::decode_envelope(answers[0]).has_value());
  const Ran run = run_program(benchmark(base, mock.url(), 200, {"--agents", address}), 25'000);
  EXPECT_EQ(run.exit_code, 0) << run.output << agent.output();
  agent.signal(SIGTERM);
  agent.wait(10'000);
  EXPECT_EQ(count(agent.output(), "speaks protocol version"), 1U) << agent.output();
  EXPECT_EQ(count(agent.output(), "do not begin as a tutti frame"), 1U) << agent.output();
}

// ---- secrets ----------------------------------------------------------------------------------

std::string of_process(pid_t pid, const char* file) {
  return read_text(fmt::format("/proc/{}/{}", pid, file));
}

std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> out;
  std::istringstream words(of_process(parent, fmt::format("task/{}/children", parent).c_str()));
  for (pid_t pid = 0; words >> pid;) {
    out.push_back(pid);
  }
  return out;
}

std::string everything_in(const std::string& folder) {
  std::string all;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    all += entry.is_regular_file() ? read_text(entry.path().string()) : "";
  }
  return all;
}

// What of a process others can see, its own arguments and environment included; and that it leaves
// no core.
void expect_nothing_of(const std::string& secret, pid_t pid, const std::string& who) {
  EXPECT_THAT(of_process(pid, "cmdline"), Not(HasSubstr(secret))) << who;
  EXPECT_THAT(of_process(pid, "environ"), Not(HasSubstr(secret))) << who;
  EXPECT_THAT(of_process(pid, "limits"), testing::ContainsRegex("Max core file size +0 +0 "))
      << who;
}

constexpr const char* kApiKey = "sk-test-4f1d0c7e5b2a9";

TEST(Strangers, TheApiKeyIsInNoFileLogOrProcessList) {
  // The server knows the key from its requests, and quotes nothing; the 401 below does.
  const MortalMock mock(kPace);
  const std::string base = fresh_folder("secrets-api");
  const std::string config = base + "/point.yaml";
  std::ofstream(config) << fmt::format(
      "type: online\nmodel_params: {{name: m}}\ndatasets: [{{path: {}}}]\n"
      "endpoint_config: {{endpoints: ['{}'], api_key: '${{OPENAI_API_KEY}}'}}\n"
      "settings:\n  load_pattern: {{type: concurrency, target_concurrency: 8}}\n"
      "  runtime: {{n_samples_to_issue: 400}}\nreport_dir: {}/by-config\n",
      write_prompts(base, 50), mock.url(), base);
  Program by_config({"tutti", "benchmark", "from-config", "-c", config},
                    {{"OPENAI_API_KEY", kApiKey}, {"TMPDIR", base}});
  Program by_flag(benchmark(base, mock.url(), 400, {"--api-key", kApiKey, "--local-agents", "2"}),
                  {{"TMPDIR", base}});
  std::string said;
  for (Program* run : {&by_config, &by_flag}) {
    ASSERT_TRUE(run->says("phase performance", 20'000)) << run->output();
    const auto agents = children_of(run->pid());
    EXPECT_EQ(agents.size(), run == &by_flag ? 2U : 1U);
    expect_nothing_of(kApiKey, run->pid(), "the coordinator");
    for (const pid_t agent : agents) {
      expect_nothing_of(kApiKey, agent, "an agent");
    }
  }
  for (Program* run : {&by_config, &by_flag}) {
    EXPECT_EQ(run->wait(25'000), 0) << run->output();
    said += run->output();
  }
  EXPECT_THAT(said, Not(HasSubstr(kApiKey)));
  EXPECT_THAT(everything_in(base), Not(HasSubstr(kApiKey)));
}

class BothWays : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Strangers, BothWays, testing::Values("direct", "multi"),
                         [](const auto& way) { return std::string(way.param); });

TEST_P(BothWays, AServerThatQuotesTheKeyInItsErrorIsNotQuoted) {
  const support::ScriptedServer server([](const support::ScriptedRequest& request) {
    return support::Script{support::send_bytes(support::json_reply(
        R"({"error": {"message": "who is )" + request.header("authorization") + R"("}})", 401))};
  });
  const std::string base = fresh_folder(fmt::format("secrets-quoted-{}", GetParam()));
  const Ran run = run_program(benchmark(base, fmt::format("http://127.0.0.1:{}", server.port()), 20,
                                        {"--api-key", kApiKey, "--transport", GetParam()}),
                              25'000, {{"TMPDIR", base}});
  EXPECT_EQ(run.exit_code, 4) << run.output;
  EXPECT_THAT(run.output, Not(HasSubstr(kApiKey)));
  const std::string all = everything_in(base);
  EXPECT_THAT(all, HasSubstr("who is Bearer <redacted>"));
  EXPECT_THAT(all, Not(HasSubstr(kApiKey)));
}

TEST(Strangers, TheSecretKeysAreInNoFileLogOrProcessList) {
  const MortalMock mock(kPace);
  const std::string base = fresh_folder("secrets-curve");
  const std::string keys = fresh_folder("secrets-curve-keys");
  std::vector<std::string> secrets;
  for (const char* name : {"coordinator", "agent"}) {
    ASSERT_EQ(run_program({"tutti", "keys", "new", keys + "/" + name}).exit_code, 0);
    const std::string text = read_text(keys + "/" + name);
    secrets.push_back(text.substr(text.find("secret ") + 7, 40));
  }
  const std::string address = fmt::format("tcp://127.0.0.1:{}", free_port());
  Program run(benchmark(base, mock.url(), 400,
                        {"--listen", address, "--expect-agents", "1", "--keys",
                         keys + "/coordinator", "--agent-keys", keys + "/agent.pub"}),
              {{"TMPDIR", base}});
  Program agent({"tutti-agent", "--connect", address, "--keys", keys + "/agent",
                 "--coordinator-key", keys + "/coordinator.pub", "--cache-dir", base + "/cache",
                 "--spool-dir", base + "/spool"});
  ASSERT_TRUE(run.says("phase performance", 20'000)) << run.output() << agent.output();
  for (const std::string& secret : secrets) {
    expect_nothing_of(secret, run.pid(), "the coordinator");
    expect_nothing_of(secret, agent.pid(), "the agent");
  }
  EXPECT_EQ(run.wait(25'000), 0) << run.output();
  EXPECT_EQ(agent.wait(10'000), 0) << agent.output();
  for (const std::string& secret : secrets) {
    EXPECT_THAT(run.output() + agent.output() + everything_in(base), Not(HasSubstr(secret)));
  }
}

}  // namespace
}  // namespace tutti::testing_support
