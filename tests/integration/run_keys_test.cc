// Keys: agents over tcp are let in by their public key, both ways of dialling; strangers are turned
// away by name while the run goes on; a secret is shown nowhere.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/program.h"

namespace tutti::testing_support {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// A folder with prompts and a key pair for each name.
struct Place {
  std::string base;
  std::string data;

  Place(const std::string& name, const std::vector<std::string>& pairs)
      : base(fresh_folder(name)), data(write_prompts(base, 200)) {
    for (const auto& pair : pairs) {
      const Ran ran = run_program({"tutti", "keys", "new", key(pair)});
      EXPECT_EQ(ran.exit_code, 0) << ran.output;
    }
  }
  std::string key(const std::string& name) const { return base + "/" + name + ".key"; }
  std::string open_key(const std::string& name) const { return key(name) + ".pub"; }
  std::string secret(const std::string& name) const {
    std::istringstream words(read_text(key(name)));
    std::string word;
    while (words >> word && word != "secret") {
    }
    words >> word;
    EXPECT_EQ(word.size(), 40U);
    return word;
  }
  std::vector<std::string> benchmark(const Mock& mock, const std::string& folder,
                                     const std::vector<std::string>& more) const {
    return words_of({data, folder, {mock.urls().front()}, 32, 400, more});
  }
};

int completed(const std::string& folder) {
  return read_json(folder + "/performance/result_summary.json")["n_samples_completed"].get<int>();
}

std::string everything_in(const std::string& folder) {
  std::string all;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    all += entry.is_regular_file() ? read_text(entry.path().string()) : "";
  }
  return all;
}

TEST(Keys, AgentsWithTheRightKeyJoinAndStrangersAreTurnedAwayByName) {
  const Mock mock(1, {"--ttft", "20ms", "--gap", "2ms", "--tokens", "8"});
  const Place place("keys-dial-in", {"coordinator", "agent", "stranger"});
  const std::string address = fmt::format("tcp://127.0.0.1:{}", free_port());
  const auto agent = [&](const std::vector<std::string>& keys) {
    std::vector<std::string> words{"tutti-agent", "--connect", address};
    words.insert(words.end(), keys.begin(), keys.end());
    return std::make_unique<Program>(words);
  };
  const std::string ours = place.open_key("coordinator");
  const auto stranger = agent({"--keys", place.key("stranger"), "--coordinator-key", ours});
  const auto keyless = agent({});
  // Knows nobody's right key: it takes the coordinator for an impostor.
  const auto misled =
      agent({"--keys", place.key("agent"), "--coordinator-key", place.open_key("stranger")});
  const std::string folder = place.base + "/run";
  Program coordinator(
      place.benchmark(mock, folder,
                      {"--listen", address, "--expect-agents", "2", "--keys",
                       place.key("coordinator"), "--agent-keys", place.open_key("agent")}));
  ASSERT_TRUE(coordinator.says("turned away", 30'000)) << coordinator.output();
  std::vector<std::unique_ptr<Program>> agents;
  for (int i = 0; i < 2; ++i) {
    agents.push_back(agent({"--keys", place.key("agent"), "--coordinator-key", ours}));
  }
  ASSERT_EQ(coordinator.wait(60'000), 0) << coordinator.output();
  std::string said = coordinator.output();
  for (const auto& each : agents) {
    EXPECT_EQ(each->wait(20'000), 0) << each->output();
    said += each->output();
  }
  for (const auto* other : {stranger.get(), keyless.get(), misled.get()}) {
    other->signal(SIGTERM);
  }
  EXPECT_NE(stranger->wait(20'000), 0);
  EXPECT_NE(keyless->wait(20'000), 0);
  EXPECT_NE(misled->wait(20'000), 0);
  EXPECT_EQ(completed(folder), 400);
  const std::string line = read_text(place.open_key("stranger"));
  const std::string their_key = line.substr(7, 40);
  EXPECT_THAT(said, HasSubstr(their_key));
  EXPECT_EQ(said.find(their_key), said.rfind(their_key)) << "told more than once:\n" << said;
  said += stranger->output() + keyless->output() + misled->output() + everything_in(folder);
  for (const char* name : {"coordinator", "agent", "stranger"}) {
    EXPECT_EQ(said.find(place.secret(name)), std::string::npos) << name;
  }
}

TEST(Keys, AgentsThatListenObeyTheirCoordinatorOnly) {
  const Mock mock(1, {"--ttft", "2ms", "--gap", "1ms", "--tokens", "3"});
  const Place place("keys-dial-out", {"coordinator", "one", "two", "stranger"});
  std::vector<std::unique_ptr<Program>> agents;
  std::string places;
  for (const char* name : {"one", "two"}) {
    const std::string at = fmt::format("tcp://127.0.0.1:{}", free_port());
    places += (places.empty() ? "" : ",") + at;
    agents.push_back(std::make_unique<Program>(
        std::vector<std::string>{"tutti-agent", "--listen", at, "--keys", place.key(name),
                                 "--coordinator-key", place.open_key("coordinator")}));
    ASSERT_TRUE(agents.back()->says("listening at", 20'000)) << agents.back()->output();
  }
  const std::string both = place.base + "/both.pub";
  std::ofstream(both) << read_text(place.open_key("one")) << read_text(place.open_key("two"));
  const std::string folder = place.base + "/run";
  const Ran ran = run_program(place.benchmark(mock, folder,
                                              {"--agents", places, "--keys",
                                               place.key("coordinator"), "--agent-keys", both}),
                              60'000);
  ASSERT_EQ(ran.exit_code, 0) << ran.output;
  EXPECT_EQ(completed(folder), 400);
  // Another coordinator gets no answer from them: its run ends without agents.
  Program usurper(
      place.benchmark(mock, place.base + "/usurped",
                      {"--agents", places, "--keys", place.key("stranger"), "--agent-keys", both}));
  EXPECT_TRUE(agents.front()->says("turned away", 30'000))
      << agents.front()->output() << "\nand the other side: " << usurper.output();
  usurper.signal(SIGTERM);
  EXPECT_NE(usurper.wait(30'000), 0) << usurper.output();
  for (const auto& agent : agents) {
    agent->signal(SIGTERM);
    EXPECT_NE(agent->wait(20'000), -1) << agent->output();
  }
}

TEST(Keys, ShowSaysTheSameOfAPairAndOfItsPublicFile) {
  const Place place("keys-show", {"agent"});
  const Ran pair = run_program({"tutti", "keys", "show", place.key("agent")});
  const Ran open = run_program({"tutti", "keys", "show", place.open_key("agent")});
  EXPECT_EQ(pair.exit_code, 0) << pair.output;
  EXPECT_EQ(open.exit_code, 0) << open.output;
  EXPECT_EQ(open.output, pair.output);
  EXPECT_THAT(open.output, testing::StartsWith("public "));
  ASSERT_EQ(chmod(place.key("agent").c_str(), 0644), 0);
  const Ran loose = run_program({"tutti", "keys", "show", place.key("agent")});
  EXPECT_EQ(loose.exit_code, 3);
  EXPECT_THAT(loose.output, HasSubstr("mode 0644"));
}

TEST(Keys, AFileThatOthersCanReadOrThatIsNoPairIsRefusedBeforeAnythingIsSent) {
  const Mock mock(1);
  const Place place("keys-refused", {"coordinator", "agent"});
  const auto refused = [&](const std::vector<std::string>& more) {
    auto words = more;
    words.insert(words.end(), {"--listen", fmt::format("tcp://127.0.0.1:{}", free_port()),
                               "--expect-agents", "1"});
    const Ran ran = run_program(place.benchmark(mock, place.base + "/run", words));
    EXPECT_NE(ran.exit_code, 0);
    return fmt::format("{} {}", ran.exit_code, ran.output);
  };
  const std::string key = place.key("coordinator");
  const std::string agents = place.open_key("agent");
  EXPECT_THAT(refused({"--keys", key}), AllOf(HasSubstr("1 "), HasSubstr("needs agent_keys")));
  EXPECT_THAT(refused({"--agent-keys", agents}), HasSubstr("needs keys"));
  EXPECT_THAT(refused({"--keys", agents, "--agent-keys", agents}),
              AllOf(HasSubstr("3 "), HasSubstr("chmod 600")));
  EXPECT_THAT(refused({"--keys", place.base + "/none", "--agent-keys", agents}),
              HasSubstr("No such file"));
  EXPECT_THAT(refused({"--keys", key, "--agent-keys", place.data}), HasSubstr("public KEY"));
  ASSERT_EQ(chmod(key.c_str(), 0640), 0);
  EXPECT_THAT(refused({"--keys", key, "--agent-keys", agents}),
              AllOf(HasSubstr("mode 0640"), HasSubstr("chmod 600 " + key)));
  const Ran agent = run_program({"tutti-agent", "--connect", "tcp://127.0.0.1:1", "--keys", key,
                                 "--coordinator-key", agents});
  EXPECT_EQ(agent.exit_code, 3);
  EXPECT_THAT(agent.output, HasSubstr("mode 0640"));
  EXPECT_EQ(mock.metric("tutti_mock_requests_total"), 1) << "only this question";
}

TEST(Keys, NewNeverOverwritesAndShowTellsThePublicHalfOnly) {
  const Place place("keys-command", {"mine"});
  const std::string before = read_text(place.key("mine"));
  const Ran again = run_program({"tutti", "keys", "new", place.key("mine")});
  EXPECT_EQ(again.exit_code, 3);
  EXPECT_THAT(again.output, HasSubstr("remove it first"));
  EXPECT_EQ(read_text(place.key("mine")), before);
  const Ran shown = run_program({"tutti", "keys", "show", place.key("mine")});
  EXPECT_EQ(shown.exit_code, 0);
  EXPECT_EQ(shown.output, read_text(place.open_key("mine")));
  EXPECT_THAT(shown.output, Not(HasSubstr(place.secret("mine"))));
  EXPECT_EQ(run_program({"tutti", "keys", "burn", place.key("mine")}).exit_code, 1);
  EXPECT_THAT(run_program({"tutti", "keys", "--help"}).output, HasSubstr("tutti keys new FILE"));
}

}  // namespace
}  // namespace tutti::testing_support
