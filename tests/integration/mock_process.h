#pragma once

// A running tutti-mock for tests, and a plain blocking TCP client to speak to it byte by byte. The
// process is killed with its owner. One thread.

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::mock_llm {

class MockProcess {
 public:
  // Starts the built binary on a free port (more with extra --port arguments) and waits until it
  // listens. `fd_limit` 0 leaves the limit alone.
  explicit MockProcess(std::vector<std::string> arguments, std::uint64_t fd_limit = 0);
  MockProcess(const MockProcess&) = delete;
  MockProcess& operator=(const MockProcess&) = delete;
  ~MockProcess();

  const std::vector<std::uint16_t>& ports() const { return ports_; }
  std::uint16_t port() const { return ports_.empty() ? 0 : ports_.front(); }
  // Sends `signal`, waits; the exit status, or -1 when it died of a signal.
  int stop(int signal);
  // Waits for a process that ends by itself.
  int wait_for_exit();
  // What it printed so far on both outputs.
  std::string output();
  // A value of /metrics, e.g. "tutti_mock_active_requests"; -1 when it is not there.
  double metric(const std::string& name_with_labels) const;
  // True once the metric has the value, within five seconds.
  bool metric_becomes(const std::string& name_with_labels, double value) const;
  bool metric_reaches(const std::string& name_with_labels, double least) const;

 private:
  bool metric_within(const std::string& name_with_labels, double least, double most) const;

  pid_t pid_ = -1;
  int pipe_ = -1;
  std::string output_;
  std::vector<std::uint16_t> ports_;
};

class Wire {
 public:
  explicit Wire(std::uint16_t port);
  Wire(Wire&& other) noexcept;
  Wire& operator=(Wire&& other) noexcept;
  ~Wire();

  bool send(std::string_view bytes) const;
  // Until `text` has been received, the connection ended, or the time is over. All bytes so far.
  const std::string& read_until(std::string_view text, int timeout_ms = 5000);
  // Until the connection ends.
  const std::string& read_to_end(int timeout_ms = 5000);
  // One answer with Content-Length or chunks, taken out of what was received.
  std::string read_answer(int timeout_ms = 5000);
  // Nothing arrives and the connection stays open for so long.
  bool is_silent(int for_ms);
  bool saw_fin() const { return fin_; }
  bool saw_reset() const { return reset_; }
  int fd() const { return fd_; }

 private:
  bool read_some(int timeout_ms);  // false: nothing more within the time

  int fd_ = -1;
  bool fin_ = false;
  bool reset_ = false;
  std::string received_;
};

// A POST with Content-Length; `headers` are whole lines with CRLF.
std::string post(std::string_view path, std::string_view body, std::string_view headers = "");
std::string chat(std::string_view fields = R"("stream":true)", std::string_view headers = "");

std::int64_t mono_ns();

// The body of an answer, chunks joined; the data of its events.
std::string body_of(const std::string& answer);
std::vector<std::string> events_of(const std::string& body);

}  // namespace tutti::mock_llm
