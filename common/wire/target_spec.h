#pragma once

// TargetSpec: what an agent talks to and how: frontends, requests' headers, ways onto the wire,
// limits. Part of Prepare (messages.h). Plain values; headers, proxy and client_key_pem hold
// secrets.

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/time.h"
#include "common/base/vocabulary.h"

namespace tutti::wire {

struct Header {
  std::string name;
  std::string value;

  friend bool operator==(const Header&, const Header&) = default;
};

// What to talk to and how; the same for every agent of a run, but for its shares and addresses.
struct TargetSpec {
  std::vector<std::string> urls;  // full request URLs, one per frontend, in config order
  base::ApiType api = base::ApiType::kOpenAiChat;
  bool streaming = true;
  bool stamp_every_chunk = false;  // stream_all_chunks
  std::vector<Header> headers;     // in wire order; may hold the API key: never logged
  bool verify_tls = true;
  base::Balance balance = base::Balance::kLeastInFlight;
  base::Duration connect_timeout{};  // 0: none
  base::Duration request_timeout{};  // 0: none
  base::Duration idle_connection_max{};
  std::uint32_t connections_max = 0;   // of this agent; 0: as many as its slots
  std::uint32_t connections_warm = 0;  // opened before the first phase
  // New ones per second of this agent, 0: unbounded, but for the engine's default while warming.
  std::uint32_t connect_rate_max = 0;
  base::Way way = base::Way::kAuto;
  std::vector<std::uint32_t> weights;  // weighted: one per frontend
  std::string affinity_header;         // each request says its sample in it; empty: none
  // Of this agent's host: its connections come from these, spread evenly; empty: the kernel's pick.
  std::vector<std::string> source_addresses;
  // Of turns of a conversation: each of these headers says which, and a turn may last so long.
  std::vector<std::string> routing_headers;
  base::Duration turn_timeout{};  // 0: none
  std::string proxy;              // URL, may hold a password: never logged; empty: none
  // PEM texts, from the coordinator's files. Whom to trust instead of what the agent's host trusts;
  // and this client's certificate, with those that lead to a known one, and its key: never logged.
  std::string ca_pem;
  std::string client_cert_pem;
  std::string client_key_pem;
  std::uint32_t streams_max = 0;  // HTTP/2: most of one connection; 0: HTTP/1.1

  friend bool operator==(const TargetSpec&, const TargetSpec&) = default;
};

}  // namespace tutti::wire
