// Where NLTK's data is looked for, and what is said of what is not whole.

#include "coordinator/conduct/punkt_files.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

namespace tutti::conduct {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

hub::Environment environment(const std::map<std::string, std::string>& values) {
  return [values](const char* name) {
    const auto found = values.find(name);
    return found == values.end() ? std::string() : found->second;
  };
}

TEST(PunktFiles, AreLookedForWhereNltkLooks) {
  EXPECT_THAT(nltk_folders(
                  environment({{"HOME", "/h"}, {"NLTK_DATA", "/a::~/b:~"}, {"VIRTUAL_ENV", "/v"}})),
              ElementsAre("/a", "/h/b", "/h", "/h/nltk_data", "/v/nltk_data", "/v/share/nltk_data",
                          "/v/lib/nltk_data", "/usr/nltk_data", "/usr/share/nltk_data",
                          "/usr/lib/nltk_data", "/usr/local/nltk_data",
                          "/usr/local/share/nltk_data", "/usr/local/lib/nltk_data"));
}

class PunktFolder : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(model_); }
  void TearDown() override { fs::remove_all(base_); }

  void put(const std::string& name, const std::string& text) const {
    std::ofstream(model_ / name, std::ios::binary) << text;
  }
  base::Result<Punkt> load() const {
    return load_punkt(environment({{"NLTK_DATA", base_.string()}}));
  }

  fs::path base_ = fs::temp_directory_path() / fmt::format("tutti_punkt_{}", ::getpid());
  fs::path model_ = base_ / "tokenizers/punkt_tab/english";
};

TEST_F(PunktFolder, IsReadWholeOrNotAtAll) {
  put("abbrev_types.txt", "dr\r\ne.g");
  put("sent_starters.txt", "he\n");
  put("collocations.tab", "j\tbach\n");
  EXPECT_THAT(load().error().message, AllOf(HasSubstr("ortho_context.tab cannot be read"),
                                            HasSubstr("nltk.downloader punkt_tab")));
  put("ortho_context.tab", "he\t82\nthe\tmany\n");
  EXPECT_THAT(load().error().message, HasSubstr("ortho_context.tab: 'the\tmany' is no line"));
  put("ortho_context.tab", "he\t82\n");
  const auto good = load();
  ASSERT_TRUE(good) << good.error().message;
  EXPECT_EQ((*good)->abbreviations.count(U"dr"), 1U);
  EXPECT_EQ((*good)->ortho_contexts.at(U"he"), 82U);
  put("collocations.tab", "j bach\n");
  EXPECT_THAT(load().error().message, HasSubstr("collocations.tab: 'j bach' is no line"));
}

}  // namespace
}  // namespace tutti::conduct
