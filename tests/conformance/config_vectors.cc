#include "tests/conformance/config_vectors.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>

namespace tutti::conformance {
namespace {

constexpr std::string_view kArrow = "=> ";

bool is_table(const std::string& kind) {
  return kind != "config" && kind != "flags" && kind != "dataset" && kind != "command";
}

// `\n` is a new line, `\\` a backslash, <empty> nothing.
std::string unescaped(const std::string& text) {
  if (text == "<empty>") {
    return {};
  }
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size() && (text[i + 1] == 'n' || text[i + 1] == '\\')) {
      out += text[++i] == 'n' ? '\n' : '\\';
    } else {
      out += text[i];
    }
  }
  return out;
}

class FileReader {
 public:
  FileReader(const std::string& path, std::vector<ConfigCase>& cases)
      : file_(path), name_(std::filesystem::path(path).filename().string()), cases_(cases) {}

  void read() {
    while (next()) {
      if (line_.empty() || line_.starts_with("# ") || line_ == "#") {
        continue;
      }
      if (line_.starts_with("@@ ")) {
        const std::size_t space = line_.find(' ', 3);
        require(space != std::string::npos, "a group is `@@ SECTION KIND`");
        section_ = line_.substr(3, space - 3);
        kind_ = line_.substr(space + 1);
      } else if (is_table(kind_)) {
        read_row();
      } else {
        read_block();
      }
    }
  }

 private:
  bool next() {
    ++number_;
    return static_cast<bool>(std::getline(file_, line_));
  }

  void require(bool holds, const std::string& text) const {
    if (!holds) {
      throw std::runtime_error(fmt::format("{}:{}: {}", name_, number_, text));
    }
  }

  ConfigCase& add(std::string id) {
    require(!section_.empty(), "a case outside any group");
    cases_.push_back({section_, kind_, std::move(id), {}, {}, {}, {}});
    cases_.back().place = fmt::format("{}:{}", name_, number_);
    return cases_.back();
  }

  void read_row() {
    const std::size_t first = line_.find(" | ");
    const std::size_t last = line_.rfind(" | ");
    require(first != std::string::npos && last != first, "a row is `ID | in | out`");
    ConfigCase& row = add(line_.substr(0, first));
    row.input = unescaped(line_.substr(first + 3, last - first - 3));
    row.output = unescaped(line_.substr(last + 3));
  }

  void read_block() {
    require(line_.starts_with('[') && line_.ends_with(']'), "a block begins with [ID]");
    ConfigCase& block = add(line_.substr(1, line_.size() - 2));
    while (next() && !line_.empty()) {
      if (!line_.starts_with(kArrow)) {
        require(block.expects.empty(), "input after an expectation");
        block.input += line_ + "\n";
        continue;
      }
      const std::size_t space = line_.find(' ', kArrow.size());
      const std::size_t end = std::min(space, line_.size());
      block.expects.emplace_back(line_.substr(kArrow.size(), end - kArrow.size()),
                                 space == std::string::npos ? "" : line_.substr(space + 1));
    }
    require(!block.expects.empty(), "a block without an expectation");
  }

  std::ifstream file_;
  std::string name_;
  std::vector<ConfigCase>& cases_;
  std::string section_;
  std::string kind_;
  std::string line_;
  int number_ = 0;
};

// "1.10" comes after "1.9".
std::vector<int> numbers_of(const std::string& section) {
  std::vector<int> out(1, 0);
  for (const char c : section) {
    if (c >= '0' && c <= '9') {
      out.back() = out.back() * 10 + (c - '0');
    } else {
      out.push_back(0);
    }
  }
  return out;
}

}  // namespace

std::vector<ConfigCase> load_config_cases(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".txt") {
      paths.push_back(entry.path().string());
    }
  }
  std::sort(paths.begin(), paths.end());
  std::vector<ConfigCase> cases;
  for (const auto& path : paths) {
    FileReader(path, cases).read();
  }
  std::set<std::string> seen;
  for (const auto& each : cases) {
    if (!seen.insert(each.section + " " + each.id).second) {
      throw std::runtime_error(
          fmt::format("{}: {} {} is there twice", each.place, each.section, each.id));
    }
  }
  return cases;
}

std::vector<std::pair<std::string, int>> count_by_section(const std::vector<ConfigCase>& cases) {
  std::map<std::vector<int>, std::pair<std::string, int>> counts;
  for (const auto& each : cases) {
    auto& count = counts[numbers_of(each.section)];
    count.first = each.section;
    ++count.second;
  }
  std::vector<std::pair<std::string, int>> out;
  for (auto& [numbers, count] : counts) {
    out.push_back(std::move(count));
  }
  return out;
}

}  // namespace tutti::conformance
