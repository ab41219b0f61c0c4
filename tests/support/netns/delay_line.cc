// tutti-delay-line: a cable with a length. It joins a tun device of one network namespace to one of
// another and hands every packet over late, for kernels without the netem qdisc. The delay of a
// packet is drawn evenly from delay ± jitter, each way by its own; packets never overtake each
// other, as on a real line. Needs root; ends when told to, or after the given seconds.

#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/random.h"
#include "common/base/time.h"
#include "common/sys/fd.h"

namespace {

using tutti::base::Duration;
using tutti::base::Instant;

constexpr std::size_t kPacketMax = 65536;
constexpr std::size_t kQueueMax = 100'000;  // packets under way; more are lost
constexpr const char* kUsage =
    "tutti-delay-line PID_A DEVICE_A PID_B DEVICE_B A_TO_B_US JITTER_US B_TO_A_US JITTER_US "
    "SECONDS\n"
    "Joins the tun devices (ip tuntap add DEVICE mode tun) of two network namespaces, each given "
    "by\n"
    "the pid of a process in it. Says \"ready\" once both are joined.\n";

struct Packet {
  Instant out_at{};
  std::vector<char> bytes;
};

// One direction.
struct Way {
  int from = -1;
  int to = -1;
  Duration delay{};
  Duration jitter{};
  std::deque<Packet> under_way;
  Instant last{};
  std::vector<char> buffer = std::vector<char>(kPacketMax);

  void take(Instant now, tutti::base::Mt19937& chance) {
    for (;;) {
      const ssize_t size = ::read(from, buffer.data(), buffer.size());
      if (size <= 0) {
        return;
      }
      if (under_way.size() >= kQueueMax) {
        continue;
      }
      const double part = 2 * chance.next_double() - 1;
      const Duration drawn{delay.ns +
                           static_cast<std::int64_t>(part * static_cast<double>(jitter.ns))};
      last = std::max(last, now + drawn);
      under_way.push_back({last, std::vector<char>(buffer.data(), buffer.data() + size)});
    }
  }
  // A packet that its device has no room for is lost, as on a real one.
  void give(Instant now) {
    while (!under_way.empty() && under_way.front().out_at <= now) {
      const Packet& packet = under_way.front();
      if (::write(to, packet.bytes.data(), packet.bytes.size()) < 0 && errno == EINTR) {
        continue;
      }
      under_way.pop_front();
    }
  }
  Instant next() const {
    return under_way.empty() ? tutti::base::kFarFuture : under_way.front().out_at;
  }
};

bool number(const char* text, std::int64_t& out) {
  const char* end = text + std::strlen(text);
  const auto [stop, code] = std::from_chars(text, end, out);
  return code == std::errc{} && stop == end && out >= 0;
}

// Joins the namespace of `pid` for good; the device's descriptor stays in it. Below 0: errno says.
int open_tun(const std::string& pid, const std::string& device) {
  const tutti::sys::Fd space(::open(("/proc/" + pid + "/ns/net").c_str(), O_RDONLY | O_CLOEXEC));
  if (space.get() < 0 || ::setns(space.get(), CLONE_NEWNET) != 0) {
    return -1;
  }
  const int fd = ::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  ifreq request{};
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  device.copy(static_cast<char*>(request.ifr_name), IFNAMSIZ - 1);
  if (fd < 0 || ::ioctl(fd, TUNSETIFF, &request) != 0) {
    return -1;
  }
  return fd;
}

void carry(std::array<Way, 2>& ways, Instant until) {
  const tutti::base::SystemClock clock;
  tutti::base::Mt19937 chance(1);
  std::array<pollfd, 2> ready{};
  ready[0] = {ways[0].from, POLLIN, 0};
  ready[1] = {ways[1].from, POLLIN, 0};
  for (Instant now = clock.mono(); now < until; now = clock.mono()) {
    for (Way& way : ways) {
      way.give(now);
    }
    const Instant next = std::min({ways[0].next(), ways[1].next(), until});
    const std::int64_t wait = std::max<std::int64_t>(0, (next - clock.mono()).ns);
    const timespec time{wait / 1'000'000'000, wait % 1'000'000'000};
    if (::ppoll(ready.data(), ready.size(), &time, nullptr) <= 0) {
      continue;
    }
    now = clock.mono();
    for (std::size_t i = 0; i < ways.size(); ++i) {
      if (ready.at(i).revents != 0) {
        ways.at(i).take(now, chance);
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::array<std::int64_t, 5> numbers{};
  bool good = argc == 10;
  for (std::size_t i = 0; good && i < numbers.size(); ++i) {
    good = number(argv[5 + i], numbers.at(i));
  }
  if (!good || numbers[1] > numbers[0] || numbers[3] > numbers[2]) {
    std::fputs(kUsage, stderr);
    return 1;
  }
  const int a = open_tun(argv[1], argv[2]);
  const int b = a < 0 ? -1 : open_tun(argv[3], argv[4]);
  if (a < 0 || b < 0) {
    std::fprintf(stderr, "tutti-delay-line: %s of process %s: %s\n", a < 0 ? argv[2] : argv[4],
                 a < 0 ? argv[1] : argv[3], std::strerror(errno));
    return 3;
  }
  ::prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  std::puts("ready");
  std::fflush(stdout);
  std::array<Way, 2> ways;
  for (std::size_t i = 0; i < ways.size(); ++i) {
    ways.at(i).from = i == 0 ? a : b;
    ways.at(i).to = i == 0 ? b : a;
    ways.at(i).delay = Duration::micros(numbers.at(2 * i));
    ways.at(i).jitter = Duration::micros(numbers.at(2 * i + 1));
  }
  const tutti::base::SystemClock clock;
  carry(ways, clock.mono() + Duration::seconds(numbers[4]));
  return 0;
}
