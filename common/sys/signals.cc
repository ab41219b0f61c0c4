#include "common/sys/signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>

#include "common/base/check.h"

namespace tutti::sys {

StopSignals::StopSignals() {
  sigset_t wanted;
  sigemptyset(&wanted);
  sigaddset(&wanted, SIGINT);
  sigaddset(&wanted, SIGTERM);
  sigaddset(&wanted, SIGUSR1);
  sigaddset(&wanted, SIGUSR2);
  TUTTI_CHECK(pthread_sigmask(SIG_BLOCK, &wanted, nullptr) == 0);
  fd_ = Fd(signalfd(-1, &wanted, SFD_NONBLOCK | SFD_CLOEXEC));
  TUTTI_CHECK(fd_.is_open());
}

std::optional<int> StopSignals::take() {
  signalfd_siginfo info{};
  if (read(fd_.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info)) {
    return std::nullopt;
  }
  return static_cast<int>(info.ssi_signo);
}

const char* StopSignals::name(int signal) {
  switch (signal) {
    case SIGINT:
      return "SIGINT";
    case SIGTERM:
      return "SIGTERM";
    case SIGUSR1:
      return "SIGUSR1";
    case SIGUSR2:
      return "SIGUSR2";
    default:
      return "a signal";
  }
}

}  // namespace tutti::sys
