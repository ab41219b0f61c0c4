// MultiTransport's warming: one probe per frontend (name, address, TCP, TLS), then the warm stock.

#include <openssl/ssl.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "agent/target/multi_transport.h"
#include "common/base/check.h"

namespace tutti::target {
namespace {

constexpr base::Duration kProbeTimeout = base::Duration::seconds(10);  // when none is configured

}  // namespace

curl_socket_t MultiTransport::on_probe_open(void* probe, curlsocktype, curl_sockaddr* address) {
  auto& self = *static_cast<Probe*>(probe);
  self.address.length =
      static_cast<socklen_t>(std::min<std::size_t>(address->addrlen, sizeof self.address.storage));
  std::memcpy(&self.address.storage, &address->addr, self.address.length);
  return self.owner->adopt(self.owner->fresh_socket(*address, self.frontend, self.os_error),
                           self.frontend, self.os_error);
}

// TLS has agreed on a version by now, or on none. Without TLS only a request would tell.
int MultiTransport::on_probe_stands(void* probe, char*, char*, int, int) {
  auto& self = *static_cast<Probe*>(probe);
  curl_tlssessioninfo* info = nullptr;
  curl_easy_getinfo(self.easy, CURLINFO_TLS_SSL_PTR, &info);
  if (info != nullptr && info->backend == CURLSSLBACKEND_OPENSSL && info->internals != nullptr) {
    const unsigned char* name = nullptr;
    unsigned size = 0;
    SSL_get0_alpn_selected(static_cast<SSL*>(info->internals), &name, &size);
    self.agreed_on_http2 = std::string_view(reinterpret_cast<const char*>(name), size) == "h2";
  }
  return CURL_PREREQFUNC_OK;
}

void MultiTransport::start_probe(Probe& probe) {
  const Frontend& frontend = config_.frontends[probe.frontend];
  probe.easy = curl_easy_init();
  TUTTI_CHECK(probe.easy != nullptr);
  configure_handle(probe.easy, shared_);
  if (multiplexes() && frontend.tls) {
    set_streams(probe.easy, frontend, true);
    curl_easy_setopt(probe.easy, CURLOPT_PREREQFUNCTION, on_probe_stands);
    curl_easy_setopt(probe.easy, CURLOPT_PREREQDATA, &probe);
  }
  curl_easy_setopt(probe.easy, CURLOPT_PRIVATE, &probe);
  curl_easy_setopt(probe.easy, CURLOPT_URL, frontend.url.c_str());
  curl_easy_setopt(probe.easy, CURLOPT_CONNECT_ONLY, 1L);
  curl_easy_setopt(probe.easy, CURLOPT_ERRORBUFFER, probe.error_text.data());
  curl_easy_setopt(probe.easy, CURLOPT_OPENSOCKETFUNCTION, on_probe_open);
  curl_easy_setopt(probe.easy, CURLOPT_OPENSOCKETDATA, &probe);
  bound_connecting(probe.easy, *config_.target, true);
  if (config_.target->connect_timeout.ns == 0) {
    curl_easy_setopt(probe.easy, CURLOPT_CONNECTTIMEOUT_MS,
                     static_cast<long>(kProbeTimeout.ns / 1'000'000));
  }
  ++probe_shard_.running;
  ++probes_running_;
  TUTTI_CHECK(curl_multi_add_handle(probe_shard_.multi, probe.easy) == CURLM_OK);
}

void MultiTransport::warm(const WarmPlan& plan) {
  TUTTI_CHECK(warming_ == Warming::kNo);
  warm_plan_ = plan;
  warming_ = Warming::kProbing;
  if (probe_shard_.multi == nullptr) {
    open_shard(probe_shard_, 0, config_.frontends.size() + 1);
  }
  probes_ = std::vector<Probe>(config_.frontends.size());
  resolved_.assign(config_.frontends.size(), {});
  for (std::size_t i = 0; i < probes_.size(); ++i) {
    probes_[i].owner = this;
    probes_[i].frontend = static_cast<std::uint16_t>(i);
    start_probe(probes_[i]);
  }
}

void MultiTransport::deliver_probe(CURL* easy, CURLcode code) {
  void* pointer = nullptr;
  curl_easy_getinfo(easy, CURLINFO_PRIVATE, &pointer);
  auto& probe = *static_cast<Probe*>(pointer);
  probe.reach.reachable = code == CURLE_OK;
  if (code == CURLE_OK) {
    curl_off_t resolved = 0;
    curl_off_t connected = 0;
    curl_off_t secured = 0;
    curl_easy_getinfo(easy, CURLINFO_NAMELOOKUP_TIME_T, &resolved);
    curl_easy_getinfo(easy, CURLINFO_CONNECT_TIME_T, &connected);
    curl_easy_getinfo(easy, CURLINFO_APPCONNECT_TIME_T, &secured);
    probe.reach.connect_us = static_cast<std::uint32_t>(
        std::max<curl_off_t>(std::max(connected, secured) - resolved, 1));
    // Of several addresses tried at once, the one that answered.
    curl_socket_t fd = CURL_SOCKET_BAD;
    curl_easy_getinfo(easy, CURLINFO_ACTIVESOCKET, &fd);
    socklen_t length = sizeof probe.address.storage;
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&probe.address.storage), &length) == 0) {
      probe.address.length = length;
    }
  }
  const Frontend& frontend = config_.frontends[probe.frontend];
  if (code == CURLE_OK && multiplexes() && frontend.tls && !probe.agreed_on_http2) {
    probe.reach.reachable = false;
    probe.reach.error = frontend.label + ": does not offer HTTP/2, which http_version asks for";
  }
  curl_off_t looked_up_us = 0;
  curl_easy_getinfo(easy, CURLINFO_NAMELOOKUP_TIME_T, &looked_up_us);
  resolved_[probe.frontend] = {probe.address, static_cast<std::uint32_t>(looked_up_us)};
  if (code != CURLE_OK) {
    long os_error = probe.os_error;
    if (os_error == 0 && code == CURLE_COULDNT_CONNECT) {
      curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &os_error);
    }
    CurlFacts facts;
    facts.code = code;
    facts.os_error = static_cast<int>(os_error);
    facts.curl_text = probe.error_text.data();
    facts.frontend = frontend.label;
    if (shared_.proxy.is_set()) {
      long status = 0;
      curl_easy_getinfo(easy, CURLINFO_HTTP_CONNECTCODE, &status);
      facts.connect_status = static_cast<int>(status);
      facts.proxy = shared_.proxy.label;
    }
    probe.reach.error = end_detail_of(facts);
    probe.address = {};
  }
  curl_multi_remove_handle(probe_shard_.multi, easy);
  curl_easy_cleanup(easy);
  probe.easy = nullptr;
  --probe_shard_.running;
  --probes_running_;
}

void MultiTransport::go_on_warming(base::Instant now) {
  if (warming_ == Warming::kProbing) {
    if (probe_shard_.wake_at <= now) {
      act(probe_shard_, CURL_SOCKET_TIMEOUT, 0);
    }
    if (probe_shard_.ended) {
      deliver(probe_shard_);
    }
    if (probes_running_ > 0) {
      return;
    }
    std::vector<SocketAddress> addresses;
    for (const auto& probe : probes_) {
      addresses.push_back(probe.address);
    }
    const base::Duration timeout = config_.target->connect_timeout;
    stock_.begin(warm_plan_, addresses, timeout.ns > 0 ? timeout : kProbeTimeout, now);
    warming_ = Warming::kOpening;
  }
  stock_.on_wake(now);
  if (stock_.opening()) {
    return;
  }
  warming_ = Warming::kNo;
  Warmed warmed;
  for (auto& probe : probes_) {
    warmed.frontends.push_back(std::move(probe.reach));
  }
  probes_.clear();
  warmed.connections_open = static_cast<std::uint32_t>(stock_.size());
  sink_.on_warmed(std::move(warmed));
}

}  // namespace tutti::target
