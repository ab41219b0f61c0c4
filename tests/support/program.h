#pragma once

// Program: one of our binaries as a child process of a test: its output, its signals, its end.
// Killed with its owner. And what the end-to-end tests share: a mock with ports, run folders, their
// JSON. One thread.

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace tutti::testing_support {

class Program {
 public:
  // `words[0]` is a binary's name ("tutti"), looked up where this build put it, or a whole path.
  // `environment` is added.
  explicit Program(std::vector<std::string> words,
                   const std::map<std::string, std::string>& environment = {});
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Exit code, 128 + signal, or -1 when it did not end in time (it is killed then).
  int wait(int timeout_ms);
  void signal(int number) const;
  // Reads until the output holds `text`; false at the end or after the time.
  bool says(const std::string& text, int timeout_ms);
  const std::string& output() const { return output_; }  // both streams
  pid_t pid() const { return pid_; }

 private:
  bool read_some(int timeout_ms);  // false: end of output, or nothing came

  pid_t pid_ = -1;
  int pipe_ = -1;
  bool ended_output_ = false;
  std::string output_;
};

struct Ran {
  int exit_code = -1;
  std::string output;
};
Ran run_program(std::vector<std::string> words, int timeout_ms = 60'000,
                const std::map<std::string, std::string>& environment = {});

// A tutti-mock with `ports` free ports.
class Mock {
 public:
  explicit Mock(std::size_t ports, std::vector<std::string> flags = {});
  const std::vector<std::string>& urls() const { return urls_; }
  // Sum of a metric over its labels, from /metrics of the first port.
  double metric(const std::string& name) const;

 private:
  std::string port_file_;
  Program program_;
  std::vector<std::string> urls_;
};

// `tutti benchmark online` in a closed loop: what most end-to-end tests run. `more` comes last.
struct OnlineRun {
  std::string data;
  std::string folder;
  std::vector<std::string> urls;
  std::size_t concurrency = 20;
  std::size_t queries = 100'000;
  std::vector<std::string> more = {};
};
std::vector<std::string> words_of(const OnlineRun& run);

// The pids of the tutti-agent processes that `parent` has started.
std::vector<pid_t> agents_of(pid_t parent);

// A fresh folder under the test's temporary directory.
std::string fresh_folder(const std::string& name);
std::string read_text(const std::string& path);
nlohmann::json read_json(const std::string& path);
std::vector<nlohmann::json> read_jsonl(const std::string& path);
// `rows` prompts as JSONL; returns the path.
std::string write_prompts(const std::string& folder, std::size_t rows,
                          const std::string& column = "prompt");
std::uint16_t free_port(const char* address = "127.0.0.1");

}  // namespace tutti::testing_support
