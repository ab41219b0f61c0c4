#include "tests/support/hosts.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <utility>

namespace tutti::testing_support {
namespace {

struct Cable {
  Hosts::Net net;
  const char* bridge;
  char letter;
  int subnet;
};
constexpr std::array<Cable, 2> kCables{
    {{Hosts::Net::kControl, "control", 'c', 79}, {Hosts::Net::kData, "data", 'd', 80}}};

const Cable& cable_of(Hosts::Net net) { return kCables[net == Hosts::Net::kControl ? 0 : 1]; }

bool ip(const std::string& words) {
  const bool done = std::system(("ip " + words).c_str()) == 0;
  EXPECT_TRUE(done) << "ip " << words;
  return done;
}

int here() { return open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC); }

void enter(int net) {
  if (setns(net, CLONE_NEWNET) != 0) {
    std::abort();  // anything done now would be done on the wrong host
  }
}

std::string hub_mac(int subnet) { return fmt::format("02:00:00:{}:00:01", subnet); }
std::string host_mac(int subnet, std::size_t host) {
  return fmt::format("02:00:00:{}:00:{:02}", subnet, 10 + host);
}

}  // namespace

std::string Hosts::missing() {
  if (geteuid() != 0) {
    return "needs root: network namespaces";
  }
  if (std::system("ip -Version >/dev/null 2>&1") != 0) {
    return "needs iproute2 (ip)";
  }
  // In a child: the question must not move us.
  const pid_t child = fork();
  if (child == 0) {
    _exit(unshare(CLONE_NEWNET) == 0 &&
                  std::system("ip link add name bridge0 type bridge 2>/dev/null && "
                              "ip link add name veth0 type veth peer name veth1 2>/dev/null") == 0
              ? 0
              : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0
             ? ""
             : "this system makes no network namespace with a bridge and veth for us";
}

Hosts::Hosts(std::size_t count) {
  if (unshare(CLONE_NEWNET) != 0) {
    ADD_FAILURE() << "unshare failed";
    return;
  }
  hub_ = here();
  ip("link set lo up");
  for (const Cable& cable : kCables) {
    ip(fmt::format("link add name {} type bridge", cable.bridge));
    ip(fmt::format("link set dev {} address {}", cable.bridge, hub_mac(cable.subnet)));
    ip(fmt::format("addr add 10.{}.0.1/24 dev {}", cable.subnet, cable.bridge));
    ip(fmt::format("link set dev {} up", cable.bridge));
  }
  for (std::size_t host = 1; host <= count; ++host) {
    if (unshare(CLONE_NEWNET) != 0) {
      ADD_FAILURE() << "unshare failed";
      return;
    }
    hosts_.push_back(here());
    ip("link set lo up");
    enter(hub_);
    for (const Cable& cable : kCables) {
      const std::string port = fmt::format("{}{}", cable.letter, host);
      ip(fmt::format("link add name {} type veth peer name {} address {} netns /proc/{}/fd/{}",
                     port, cable.bridge, host_mac(cable.subnet, host), getpid(), hosts_.back()));
      ip(fmt::format("link set dev {} master {} up", port, cable.bridge));
      ip(fmt::format("neigh replace 10.{}.0.{} lladdr {} dev {} nud permanent", cable.subnet,
                     10 + host, host_mac(cable.subnet, host), cable.bridge));
      const Visit visit(*this, host);
      ip(fmt::format("addr add 10.{}.0.{}/24 dev {}", cable.subnet, 10 + host, cable.bridge));
      ip(fmt::format("link set dev {} up", cable.bridge));
      ip(fmt::format("neigh replace 10.{}.0.1 lladdr {} dev {} nud permanent", cable.subnet,
                     hub_mac(cable.subnet), cable.bridge));
    }
  }
}

Hosts::~Hosts() {
  for (const int host : hosts_) {
    close(host);
  }
  close(hub_);
}

void Hosts::cut(std::size_t host, Net net) const {
  ip(fmt::format("link set dev {}{} nomaster", cable_of(net).letter, host));
}

void Hosts::mend(std::size_t host, Net net) const {
  const Cable& cable = cable_of(net);
  ip(fmt::format("link set dev {}{} master {}", cable.letter, host, cable.bridge));
}

Hosts::Visit::Visit(const Hosts& hosts, std::size_t host) : hub_(hosts.hub_) {
  enter(hosts.hosts_.at(host - 1));
}

Hosts::Visit::~Visit() { enter(hub_); }

}  // namespace tutti::testing_support
