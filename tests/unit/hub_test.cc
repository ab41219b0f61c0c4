// The hub's client: where it looks, what it asks, whom it tells the token, and what it leaves
// behind when things go wrong.

#include "common/hub/hub.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "tests/support/fake_hub.h"

namespace tutti::hub {
namespace {

namespace fs = std::filesystem;

using support::FakeHub;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

const std::string kSecret = "hf_secretsecret";

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

class HubTest : public testing::Test {
 protected:
  void SetUp() override {
    cache_ =
        fs::temp_directory_path() / ("hub-" + std::to_string(getpid()) + "-" +
                                     testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(cache_);
  }
  void TearDown() override { fs::remove_all(cache_); }

  HubTerms terms(const std::string& endpoint) const {
    return {endpoint, kSecret, cache_.string(), "", false};
  }

  std::vector<std::string> files_in_cache() const {
    std::vector<std::string> out;
    for (const auto& entry : fs::recursive_directory_iterator(cache_)) {
      if (!entry.is_directory()) {
        out.push_back(fs::relative(entry.path(), cache_).string());
      }
    }
    std::sort(out.begin(), out.end());
    return out;
  }

  // Looks up and fetches everything; the error, or empty.
  std::string fetch_all(const Hub& hub, const Repository& repository) const {
    const auto snapshot = hub.look_up(repository);
    if (!snapshot) {
      return snapshot.error().message;
    }
    const auto folder = hub.fetch(repository, *snapshot, snapshot->files);
    return folder ? std::string() : folder.error().message;
  }

  fs::path cache_;
  const Repository model_{RepositoryKind::kModel, "org/name", "main"};
};

TEST_F(HubTest, FilesComeWholeIntoTheCacheOfTheHubsOwnLibrary) {
  const FakeHub fake("models/org/name", {{"tokenizer.json", "{}"}, {"a/b.txt", "bytes\n"}});
  const Hub hub(terms(fake.url()));
  EXPECT_EQ(hub.cached(model_), std::nullopt);
  const auto snapshot = hub.look_up(model_);
  ASSERT_TRUE(snapshot.has_value()) << snapshot.error().message;
  EXPECT_THAT(snapshot->files, ElementsAre("a/b.txt", "tokenizer.json"));
  const auto folder = hub.fetch(model_, *snapshot, {"a/b.txt"});
  ASSERT_TRUE(folder.has_value()) << folder.error().message;
  EXPECT_EQ(text_of(fs::path(*folder) / "a/b.txt"), "bytes\n");
  EXPECT_EQ(hub.cached(model_), folder.value());
  const std::string commit(40, 'a');
  EXPECT_THAT(files_in_cache(), ElementsAre("models--org--name/refs/main",
                                            "models--org--name/snapshots/" + commit + "/a/b.txt",
                                            "models--org--name/tutti/" + commit + ".files"));
  EXPECT_EQ(text_of(cache_ / "models--org--name/refs/main"), commit);
}

TEST_F(HubTest, TheTokenIsToldToTheHubAndNotToWhomItLeads) {
  const FakeHub fake("models/org/name", {{"tokenizer.json", "{}"}});
  ASSERT_EQ(fetch_all(Hub(terms(fake.url())), model_), "");
  ASSERT_THAT(fake.asked(), SizeIs(2));
  for (const auto& request : fake.asked()) {
    EXPECT_EQ(request.header("Authorization"), "Bearer " + kSecret);
  }
  ASSERT_THAT(fake.led(), SizeIs(1));
  EXPECT_THAT(fake.led()[0].head, Not(HasSubstr(kSecret)));
}

TEST_F(HubTest, WhatTheCacheHasIsNotAskedForAgainAndNeedsNoNetwork) {
  std::string url;
  {
    const FakeHub fake("models/org/name", {{"tokenizer.json", "{}"}, {"other", "x"}});
    url = fake.url();
    const Hub hub(terms(url));
    const auto snapshot = hub.look_up(model_);
    ASSERT_TRUE(hub.fetch(model_, *snapshot, {"tokenizer.json"}).has_value());
    ASSERT_TRUE(hub.fetch(model_, *hub.look_up(model_), {"tokenizer.json"}).has_value());
    EXPECT_THAT(fake.asked(), SizeIs(2));
  }
  HubTerms offline = terms(url);
  offline.offline = true;
  const Hub hub(offline);
  const auto snapshot = hub.look_up(model_);
  ASSERT_TRUE(snapshot.has_value()) << snapshot.error().message;
  EXPECT_TRUE(hub.fetch(model_, *snapshot, {"tokenizer.json"}).has_value());
  const auto missing = hub.fetch(model_, *snapshot, {"other"});
  ASSERT_FALSE(missing.has_value());
  EXPECT_THAT(missing.error().message, AllOf(HasSubstr("other"), HasSubstr("HF_HUB_OFFLINE")));
  EXPECT_THAT(fetch_all(hub, {RepositoryKind::kModel, "org/unknown", "main"}),
              HasSubstr("HF_HUB_OFFLINE"));
}

TEST_F(HubTest, AnInterruptedFetchGoesOnWithTheSameCommit) {
  FakeHub fake("datasets/org/rows", {{"1.parquet", "one"}, {"2.parquet", "two"}});
  const Repository rows{RepositoryKind::kDataset, "org/rows", "main"};
  const Hub hub(terms(fake.url()));
  const auto snapshot = hub.look_up(rows);
  ASSERT_TRUE(snapshot.has_value());
  ASSERT_TRUE(hub.fetch(rows, *snapshot, {"1.parquet"}).has_value());
  fake.commit = std::string(40, 'b');
  EXPECT_EQ(hub.look_up(rows)->commit, std::string(40, 'a'));
}

TEST_F(HubTest, ARevisionMayBeACommitOrABranchWithSlashes) {
  FakeHub fake("models/org/name", {{"tokenizer.json", "{}"}});
  fake.revision = "refs%2Fpr%2F1";
  const Hub hub(terms(fake.url()));
  EXPECT_EQ(fetch_all(hub, {RepositoryKind::kModel, "org/name", "refs/pr/1"}), "");
  EXPECT_EQ(text_of(cache_ / "models--org--name/refs/refs/pr/1"), fake.commit);
  fake.revision = fake.commit;
  fs::remove_all(cache_);
  EXPECT_EQ(fetch_all(hub, {RepositoryKind::kModel, "org/name", fake.commit}), "");
  EXPECT_FALSE(fs::exists(cache_ / "models--org--name/refs"));
  EXPECT_TRUE(hub.cached({RepositoryKind::kModel, "org/name", fake.commit}).has_value());
}

TEST_F(HubTest, SnapshotsThatTheHubsOwnLibraryMadeAreFound) {
  const std::string commit(40, 'c');
  const fs::path in = cache_ / "models--org--name";
  for (const char* const part : {"blobs", "refs"}) {
    fs::create_directories(in / part);
  }
  fs::create_directories(in / "snapshots" / commit);
  std::ofstream(in / "refs/main") << commit;
  std::ofstream(in / "blobs/0123") << "blob";
  fs::create_symlink("../../blobs/0123", in / "snapshots" / commit / "tokenizer.json");
  FakeHub fake("models/org/name", {{"tokenizer.json", "{}"}});
  const Hub hub(terms(fake.url()));
  ASSERT_EQ(hub.cached(model_), (in / "snapshots" / commit).string());
  ASSERT_TRUE(hub.fetch(model_, {commit, {"tokenizer.json"}}, {"tokenizer.json"}).has_value());
  EXPECT_THAT(fake.asked(), IsEmpty());
  EXPECT_EQ(text_of(in / "snapshots" / commit / "tokenizer.json"), "blob");
}

TEST_F(HubTest, EveryRefusalSaysWhatToDoAndNeverTheToken) {
  FakeHub fake("models/org/name", {{"tokenizer.json", "{}"}});
  const std::vector<std::pair<int, std::string>> refusals = {
      {401, "check the name and HF_TOKEN"}, {403, "ask for access"},
      {404, "check name, revision"},        {429, "HF_TOKEN"},
      {500, "answered 500; try again"},     {204, "answered 204"}};
  for (const auto& [status, remedy] : refusals) {
    fake.status = status;
    const std::string why = fetch_all(Hub(terms(fake.url())), model_);
    EXPECT_THAT(why, AllOf(HasSubstr("model org/name"), HasSubstr(remedy), Not(HasSubstr(kSecret))))
        << status;
  }
  fake.status = 401;
  HubTerms nobody = terms(fake.url());
  nobody.token.clear();
  EXPECT_THAT(fetch_all(Hub(nobody), model_), HasSubstr("set HF_TOKEN to the token of one"));
  const std::string closed = "http://127.0.0.1:" + std::to_string(support::closed_port());
  EXPECT_THAT(fetch_all(Hub(terms(closed)), model_),
              AllOf(HasSubstr(closed), HasSubstr("could not be read"), HasSubstr("HF_ENDPOINT")));
  EXPECT_THAT(fetch_all(Hub(terms("ftp://hub")), model_), HasSubstr("must start with http"));
  EXPECT_FALSE(fs::exists(cache_));
}

TEST_F(HubTest, AFileThatEndsTooEarlyLeavesNothingBehind) {
  FakeHub fake("models/org/name", {{"tokenizer.json", "{}"}});
  fake.cut_off = 10;
  EXPECT_THAT(fetch_all(Hub(terms(fake.url())), model_),
              AllOf(HasSubstr("tokenizer.json"), HasSubstr("could not be read")));
  EXPECT_THAT(files_in_cache(), IsEmpty());
}

TEST_F(HubTest, AListThatLeadsOutOfTheCacheIsRefused) {
  for (const char* const name : {"../../../out", "/etc/out", "a/../../out", "", "."}) {
    const FakeHub fake("models/org/name", {{name, "x"}});
    EXPECT_THAT(fetch_all(Hub(terms(fake.url())), model_), HasSubstr("not what a hub tells"))
        << name;
  }
  FakeHub fake("models/org/name", {{"tokenizer.json", "{}"}});
  fake.commit = "../../etc";
  EXPECT_THAT(fetch_all(Hub(terms(fake.url())), model_), HasSubstr("not what a hub tells"));
  for (const char* const name : {"../org/name", "org/name/more", "", "org/", "or g/name", ".x"}) {
    EXPECT_FALSE(is_repository_name(name)) << name;
    EXPECT_NE(fetch_all(Hub(terms(fake.url())), {RepositoryKind::kModel, name, "main"}), "");
  }
  EXPECT_NE(fetch_all(Hub(terms(fake.url())), {RepositoryKind::kModel, "org/name", "../x"}), "");
}

TEST_F(HubTest, AFileOfAnotherSnapshotIsNoFile) {
  const FakeHub fake("models/org/name", {{"tokenizer.json", "{}"}});
  const Hub hub(terms(fake.url()));
  const auto fetched = hub.fetch(model_, *hub.look_up(model_), {"../other"});
  ASSERT_FALSE(fetched.has_value());
  EXPECT_THAT(fetched.error().message, HasSubstr("it has no file ../other"));
}

TEST_F(HubTest, ACacheThatCannotBeWrittenIsNamed) {
  const FakeHub fake("models/org/name", {{"tokenizer.json", "{}"}});
  std::ofstream(cache_.string()) << "a file where the folder should be";
  EXPECT_THAT(fetch_all(Hub(terms(fake.url())), model_),
              AllOf(HasSubstr("cannot be written"), HasSubstr("HF_HUB_CACHE")));
}

// An https hub does not lead to plain http, whatever it says.
TEST_F(HubTest, FromHttpsNothingLeadsToHttp) {
  support::ScriptedServer plain([](const support::ScriptedRequest&) {
    return support::Script{support::send_bytes(support::json_reply("{}"))};
  });
  support::ScriptedServer tls(
      [&](const support::ScriptedRequest&) {
        return support::Script{support::send_bytes(
            fmt::format("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:{}/\r\n"
                        "Content-Length: 0\r\n\r\n",
                        plain.port()))};
      },
      true);
  HubTerms over = terms(fmt::format("https://127.0.0.1:{}", tls.port()));
  over.ca_file = tls.certificate_file();
  EXPECT_THAT(fetch_all(Hub(over), model_), HasSubstr("could not be read"));
  EXPECT_EQ(tls.requests(), 1U);
  EXPECT_EQ(plain.requests(), 0U);
}

// A run blocks these signals before it gets ready; a long fetch must not keep it from its end.
TEST_F(HubTest, ABlockedSignalThatWaitsEndsAFetch) {
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTERM);
  const FakeHub fake("models/org/name", {{"tokenizer.json", "{}"}});
  const Hub hub(terms(fake.url()));
  const auto snapshot = hub.look_up(model_);
  ASSERT_TRUE(snapshot.has_value());
  pthread_sigmask(SIG_BLOCK, &stop, nullptr);
  raise(SIGTERM);
  const auto fetched = hub.fetch(model_, *snapshot, {"tokenizer.json"});
  const timespec soon{0, 0};
  EXPECT_EQ(sigtimedwait(&stop, nullptr, &soon), SIGTERM) << "whoever waits for it must get it";
  pthread_sigmask(SIG_UNBLOCK, &stop, nullptr);
  ASSERT_FALSE(fetched.has_value());
  EXPECT_EQ(fetched.error().code, base::ExitCode::kInterrupted);
}

HubTerms terms_of(const std::map<std::string, std::string>& variables) {
  return hub_terms([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::string() : found->second;
  });
}

TEST(HubTerms, AreReadAsTheHubsOwnLibraryReadsThem) {
  const HubTerms plain = terms_of({{"HOME", "/h"}});
  EXPECT_EQ(plain.endpoint, "https://huggingface.co");
  EXPECT_EQ(plain.cache, "/h/.cache/huggingface/hub");
  EXPECT_EQ(plain.token, "");
  EXPECT_FALSE(plain.offline);
  EXPECT_EQ(terms_of({{"HF_ENDPOINT", "http://mirror:1/ "}}).endpoint, "http://mirror:1");
  EXPECT_EQ(terms_of({{"XDG_CACHE_HOME", "/x"}}).cache, "/x/huggingface/hub");
  EXPECT_EQ(terms_of({{"HF_HOME", "/f"}, {"XDG_CACHE_HOME", "/x"}}).cache, "/f/hub");
  EXPECT_EQ(terms_of({{"HF_HUB_CACHE", "/c"}, {"HF_HOME", "/f"}}).cache, "/c");
  EXPECT_EQ(terms_of({{"HF_TOKEN", " hf_x\n"}}).token, "hf_x");
  EXPECT_EQ(terms_of({{"CURL_CA_BUNDLE", "/b"}, {"SSL_CERT_FILE", "/a"}}).ca_file, "/a");
  for (const char* const yes : {"1", "true", "ON", "Yes"}) {
    EXPECT_TRUE(terms_of({{"HF_HUB_OFFLINE", yes}}).offline) << yes;
  }
  EXPECT_FALSE(terms_of({{"HF_HUB_OFFLINE", "0"}}).offline);
}

TEST(HubTerms, TheTokenMayBeInAFile) {
  const std::string path = testing::TempDir() + "hub-token-" + std::to_string(getpid());
  std::ofstream(path) << "hf_file\n";
  EXPECT_EQ(terms_of({{"HF_TOKEN_PATH", path}}).token, "hf_file");
  EXPECT_EQ(terms_of({{"HF_TOKEN_PATH", path}, {"HF_TOKEN", "hf_own"}}).token, "hf_own");
  fs::remove(path);
}

}  // namespace
}  // namespace tutti::hub
