#include "coordinator/launch/nginx_servers.h"

#include <fmt/format.h>

#include <algorithm>

namespace tutti::launch {
namespace {

using base::ExitCode;

// Words, and ";", "{", "}" each as one of its own; comments are dropped, quotes taken off.
std::vector<std::string> tokens(std::string_view config) {
  std::vector<std::string> out;
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) {
      out.push_back(std::move(word));
      word.clear();
    }
  };
  char quote = '\0';
  for (std::size_t i = 0; i < config.size(); ++i) {
    const char c = config[i];
    if (quote != '\0') {
      if (c == quote) {
        quote = '\0';
      } else {
        word += c;
      }
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '#' && word.empty()) {
      i = std::min(config.find('\n', i), config.size());
    } else if (c == ';' || c == '{' || c == '}') {
      end_word();
      out.emplace_back(1, c);
    } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      end_word();
    } else {
      word += c;
    }
  }
  end_word();
  return out;
}

}  // namespace

base::Result<std::vector<std::string>> nginx_servers(std::string_view config) {
  const std::vector<std::string> words = tokens(config);
  std::vector<std::string> servers;
  std::vector<std::string> blocks;
  for (std::size_t i = 0; i + 2 < words.size(); ++i) {
    if (words[i] != "upstream" || words[i + 2] != "{") {
      continue;
    }
    blocks.push_back(words[i + 1]);
    for (i += 3; i < words.size() && words[i] != "}";) {
      const auto end = std::find(words.begin() + static_cast<std::ptrdiff_t>(i), words.end(), ";");
      const std::vector<std::string> line(words.begin() + static_cast<std::ptrdiff_t>(i), end);
      i = static_cast<std::size_t>(end - words.begin()) + 1;
      if (line.size() < 2 || line[0] != "server" ||
          std::find(line.begin(), line.end(), "down") != line.end() ||
          std::find(line.begin(), line.end(), "backup") != line.end()) {
        continue;
      }
      if (line[1].rfind("unix:", 0) == 0) {
        return base::fail(ExitCode::kInput,
                          fmt::format("nginx upstream {}: {} is a path; name the endpoints instead",
                                      blocks.back(), line[1]));
      }
      const bool has_port = line[1].find(':', line[1].rfind(']') + 1) != std::string::npos;
      servers.push_back(has_port ? line[1] : line[1] + ":80");
    }
  }
  if (blocks.size() != 1 || servers.empty()) {
    return base::fail(
        ExitCode::kInput,
        blocks.empty() ? std::string("this nginx configuration has no upstream block")
        : blocks.size() > 1
            ? fmt::format("this nginx configuration has several upstream blocks ({}): it is not "
                          "clear which one to load; name the endpoints instead",
                          fmt::join(blocks, ", "))
            : fmt::format("the nginx upstream {} has no server in use", blocks[0]));
  }
  return servers;
}

}  // namespace tutti::launch
