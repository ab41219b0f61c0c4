// tutti-bench-wire: the floor of tests/bench/centre. One process writes frames of the coordinator's
// messages to a socket, another takes them off; nothing is done with what is in them. Prints one
// JSON line with the CPU per record or command of the side that the coordinator is on.

#include <fmt/format.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "common/base/id.h"
#include "common/base/time.h"
#include "common/wire/codec.h"
#include "common/wire/envelope.h"
#include "common/wire/sockets.h"
#include "tests/bench/process_cpu.h"

namespace tutti::centre {
namespace {

constexpr std::uint64_t kRecords = 256;    // of a batch
constexpr std::uint64_t kCommands = 4096;  // of a lease
constexpr std::uint64_t kInAll = 2'000'000;
constexpr std::uint64_t kWindow = 512;  // frames on their way
constexpr base::Duration kLongest = base::Duration::seconds(60);

struct Options {
  bool receive = false;
  bool send = false;
  bool curve = false;
  std::size_t text_bytes = 0;
};

struct Side {
  std::string endpoint;
  wire::SocketOptions sockets;
};

std::string batch_frame(std::uint64_t number, std::size_t text_bytes) {
  wire::RecordBatch batch;
  batch.number = number;
  for (std::uint64_t i = 0; i < kRecords; ++i) {
    // No two alike, or a column of equal cells would shrink to one.
    const auto some = static_cast<std::int64_t>((number * kRecords + i) * 2'654'435'761U % 9'973);
    wire::Record record;
    record.seq = number * kRecords + i + static_cast<std::uint64_t>(some % 50);
    record.sample = static_cast<base::SampleIndex>(some % 64);
    record.streamed = true;
    record.issued_at = base::Instant{1'000'000'000 + some * 7'000};
    record.due_at = record.issued_at - base::Duration::nanos(some % 4'000);
    record.sent_at = record.issued_at + base::Duration::nanos(20'000 + some);
    record.first_byte_at = record.sent_at + base::Duration::micros(15'000 + some);
    record.first_token_at = record.first_byte_at + base::Duration::nanos(40'000 + some);
    record.last_token_at = record.first_byte_at + base::Duration::micros(80'000 + some);
    record.done_at = record.last_token_at + base::Duration::nanos(10'000 + some);
    record.prompt_tokens = 40 + static_cast<std::int32_t>(some % 64);
    record.output.content_rest.assign(text_bytes, 'x');
    batch.records.push_back(std::move(record));
  }
  return wire::encode(wire::Message(std::move(batch))).bytes;
}

std::string lease_frame(std::uint64_t number) {
  wire::Lease lease;
  for (std::uint64_t i = 0; i < kCommands; ++i) {
    base::IssueCommand command;
    command.seq = number * kCommands + i;
    command.sample = static_cast<base::SampleIndex>(i * 37 % 64);
    lease.commands.push_back(command);
  }
  return wire::encode(wire::Message(std::move(lease))).bytes;
}

wire::Frame frame_of(const std::string& payload, std::uint64_t number) {
  return {base::Id{1, 1}, base::Id{2, 2}, number, 0, wire::Plane::kData, payload};
}

// The dialling side: sends batches, or takes leases off and answers each with a word.
int peer(const Options& options, const Side& side, std::uint64_t frames) {
  const base::SystemClock clock;
  const base::Instant until = clock.mono() + kLongest;
  wire::SocketContext context;
  auto socket = wire::DialSocket::open(context, side.endpoint, side.sockets);
  if (!socket) {
    return 1;
  }
  std::string bytes;
  const std::string payload = options.receive ? batch_frame(1, options.text_bytes) : "";
  std::uint64_t sent = 0;
  std::uint64_t answered = 0;
  if (options.send) {
    socket->send("hello");
  }
  while (answered < frames && clock.mono() < until) {
    while (options.receive && sent < frames && sent < answered + kWindow &&
           socket->send(wire::encode_envelope(frame_of(payload, sent + 1))) ==
               wire::SendResult::kSent) {
      ++sent;
    }
    bool idle = true;
    while (socket->receive(bytes)) {
      ++answered;
      idle = false;
      if (options.send) {
        socket->send("got");
      }
    }
    if (idle) {
      const timespec pause{0, 200'000};
      nanosleep(&pause, nullptr);
    }
  }
  return answered < frames ? 1 : 0;
}

// The coordinator's side; false when the time is over.
bool centre(const Options& options, wire::ListenSocket& socket, std::uint64_t frames) {
  const base::SystemClock clock;
  const base::Instant until = clock.mono() + kLongest;
  const std::string payload = options.send ? lease_frame(1) : "";
  std::string route;
  std::string bytes;
  std::uint64_t taken = 0;
  std::uint64_t sent = 0;
  while (taken < frames && clock.mono() < until) {
    while (socket.receive(route, bytes)) {
      if (options.receive) {
        const auto frame = wire::decode_envelope(bytes);
        taken += frame ? 1U : 0U;
        socket.send(route, "got");
      } else if (bytes == "got") {
        ++taken;
      }
    }
    while (options.send && !route.empty() && sent < frames && sent < taken + kWindow &&
           socket.send(route, wire::encode_envelope(frame_of(payload, sent + 1))) ==
               wire::SendResult::kSent) {
      ++sent;
    }
    wire::Socket* one = &socket;
    wire::wait_input(std::span<wire::Socket* const>(&one, 1), {}, base::Duration::millis(1));
  }
  return taken == frames;
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app("the wire alone, for tests/bench/centre", "tutti-bench-wire");
  app.add_flag("--receive", options.receive, "record batches come in");
  app.add_flag("--send", options.send, "leases go out");
  app.add_flag("--curve", options.curve, "encrypted");
  app.add_option("--text", options.text_bytes, "bytes of each record's text");
  CLI11_PARSE(app, argc, argv);
  if (options.receive == options.send) {
    std::fputs("tutti-bench-wire: one of --receive and --send\n", stderr);
    return 1;
  }
  const std::uint64_t each = options.receive ? kRecords : kCommands;
  const std::uint64_t frames = kInAll / each;
  Side side;
  const wire::KeyPair ours = wire::fresh_key_pair();
  const wire::KeyPair theirs = wire::fresh_key_pair();
  int endpoint_pipe[2];
  if (pipe(endpoint_pipe) != 0) {
    return 1;
  }
  const pid_t child = fork();  // before any socket: each has threads
  if (child == 0) {
    close(endpoint_pipe[1]);
    char text[256] = {};
    if (read(endpoint_pipe[0], text, sizeof text - 1) <= 0) {
      _exit(1);
    }
    side.endpoint = text;
    if (options.curve) {
      side.sockets.keys = theirs;
      side.sockets.listener_key = ours.public_key;
    }
    _exit(peer(options, side, frames));
  }
  close(endpoint_pipe[0]);
  wire::SocketContext context;
  context.allow({theirs.public_key});
  if (options.curve) {
    side.sockets.keys = ours;
  }
  auto socket = wire::ListenSocket::open(context, "tcp://127.0.0.1:*", side.sockets);
  if (!socket) {
    std::fprintf(stderr, "tutti-bench-wire: %s\n", socket.error().message.c_str());
    return 3;
  }
  const std::string endpoint = socket->endpoint();
  const bool told = write(endpoint_pipe[1], endpoint.data(), endpoint.size()) > 0;
  close(endpoint_pipe[1]);
  const double before = bench::process_cpu_s();
  const bool all = told && centre(options, *socket, frames);
  const double used = bench::process_cpu_s() - before;
  int status = 0;
  waitpid(child, &status, 0);
  fmt::print("{{\"frames\":{},\"each\":{},\"cpu_s\":{:.4f},\"us_each\":{:.4f},\"whole\":{}}}\n",
             frames, each, used, used * 1e6 / static_cast<double>(frames * each), all);
  return all && status == 0 ? 0 : 4;
}

}  // namespace
}  // namespace tutti::centre

int main(int argc, char** argv) {
  try {
    return tutti::centre::run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "tutti-bench-wire: unexpected: %s\n", e.what());
    return 4;
  }
}
