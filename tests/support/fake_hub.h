#pragma once

// FakeHub: a hub of one repository on loopback, as Hugging Face's answers: what a revision holds,
// and its files, which it leads to a second host as the real one does. Fill it before it is asked.

#include <fmt/format.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/scripted_server.h"

namespace tutti::support {

class FakeHub {
 public:
  // `repository` as it stands in the hub's paths: "models/org/name" or "datasets/org/name".
  FakeHub(std::string repository, std::map<std::string, std::string> files)
      : repository_(std::move(repository)), files_(std::move(files)) {}

  std::string commit = std::string(40, 'a');
  std::string revision = "main";
  int status = 200;         // of every answer, when it is another
  std::size_t cut_off = 0;  // bytes that every file is short of

  std::string url() const { return address(api_); }
  // Requests the hub itself got, and the host that it leads to.
  std::vector<ScriptedRequest> asked() const { return api_.seen(); }
  std::vector<ScriptedRequest> led() const { return store_.seen(); }

 private:
  static std::string address(const ScriptedServer& server) {
    return fmt::format("http://127.0.0.1:{}", server.port());
  }

  static std::string path_of(const ScriptedRequest& request) {
    const auto begin = request.head.find(' ') + 1;
    return request.head.substr(begin, request.head.find(' ', begin) - begin);
  }

  Script answer(const ScriptedRequest& request) const {
    if (status != 200) {
      return {send_bytes(json_reply(R"({"error":"said by the hub"})", status))};
    }
    const std::string path = path_of(request);
    if (path == fmt::format("/api/{}/revision/{}", repository_, revision)) {
      std::string list;
      for (const auto& [name, bytes] : files_) {
        list += fmt::format(R"({}{{"rfilename":"{}"}})", list.empty() ? "" : ",", name);
      }
      return {
          send_bytes(json_reply(fmt::format(R"({{"sha":"{}","siblings":[{}]}})", commit, list)))};
    }
    const std::string place =
        repository_.rfind("models/", 0) == 0 ? repository_.substr(7) : repository_;
    const std::string start = fmt::format("/{}/resolve/{}/", place, commit);
    if (path.rfind(start, 0) == 0 && files_.count(path.substr(start.size())) == 1) {
      return {send_bytes(
          fmt::format("HTTP/1.1 302 Found\r\nLocation: {}/{}\r\nContent-Length: 5\r\n\r\nmoved",
                      address(store_), path.substr(start.size())))};
    }
    return {send_bytes(json_reply("{}", 404))};
  }

  Script stored(const ScriptedRequest& request) const {
    const std::string& bytes = files_.at(path_of(request).substr(1));
    return {send_bytes(fmt::format("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{}",
                                   bytes.size() + cut_off, bytes)),
            cut_off == 0 ? pause_for({}) : close_now()};
  }

  std::string repository_;
  std::map<std::string, std::string> files_;
  ScriptedServer store_{[this](const ScriptedRequest& request) { return stored(request); }};
  ScriptedServer api_{[this](const ScriptedRequest& request) { return answer(request); }};
};

}  // namespace tutti::support
