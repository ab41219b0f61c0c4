#pragma once

// Exchange: one query on the wire over a pooled easy handle, from begin() to the Record in
// finish(). The handle is configured once and keeps its buffers; per query only the body and, when
// it changed, the URL are set. Stamps: sent_at when curl hands the request to its connection
// (connected, TLS done), every other one when libcurl's callback runs, right after the read: never
// early, late by the time the read and curl's own work take. Owned by one worker thread.

#include <curl/curl.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "agent/target/chain.h"
#include "agent/target/curl_end.h"
#include "agent/target/proxy.h"
#include "agent/target/reply.h"
#include "agent/target/transport.h"

namespace tutti::target {

class Exchange;

// What opens and closes curl's sockets: the transport, which keeps its epoll set and warm stock.
class SocketSource {
 public:
  virtual curl_socket_t open_socket(const curl_sockaddr& address, Exchange& exchange,
                                    bool& connected, int& os_error) = 0;
  virtual void close_socket(curl_socket_t fd) = 0;
  // curl opens a connection for this exchange and bounds no time for it.
  virtual void connection_begins(Exchange& exchange) = 0;
  // It, or the one that the exchange was to open, takes the request now.
  virtual void connection_stands(Exchange& exchange) = 0;

 protected:
  ~SocketSource() = default;
};

// Same for every exchange of a transport; outlives them.
struct ExchangeShared {
  const TransportConfig* config = nullptr;
  const base::Clock* clock = nullptr;
  LiveGauges* gauges = nullptr;
  KnownForm* known_form = nullptr;  // of this worker's replies
  SocketSource* sockets = nullptr;
  CURLSH* share = nullptr;              // DNS answers and TLS sessions of this worker
  const curl_slist* headers = nullptr;  // in wire order; without the affinity header
  std::vector<CURLU*> urls;             // by frontend: parsed once, and not for every request
  std::string ca_file;                  // $SSL_CERT_FILE, empty: the system's
  Proxy proxy;
};

// The request's headers as curl wants them, and no others: those of the target, the routing headers
// when `conversation` is not null, and with room for its number the affinity header, whose line is
// then `affinity`.
curl_slist* header_list(const wire::TargetSpec& target, const Conversation* conversation,
                        curl_slist*& affinity);

// Options that every handle of a transport has, probes included.
void configure_handle(CURL* easy, const ExchangeShared& shared);
// How long curl lets a connection take. Bounded, each query has a timer in curl from its start to
// its end, through which every socket action of its multi handle then goes; so only what is likely
// to open one is.
void bound_connecting(CURL* easy, const wire::TargetSpec& target, bool bounded);
// HTTP/2: the handle is to open a connection, or to take a stream of one that stands.
void set_streams(CURL* easy, const Frontend& frontend, bool opens);

class Exchange {
 public:
  explicit Exchange(const ExchangeShared& shared);
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  CURL* easy() const { return easy_; }
  static Exchange* of(CURL* easy);

  // Before the handle goes to a multi: whether curl is to bound the time of a connection.
  void bound_connecting(bool bounded);
  // Prepares the handle; the caller adds it to a multi.
  void begin(const Query& query, base::Instant now);
  // curl said `code`; fills the record.
  std::unique_ptr<wire::Record>& finish(CURLcode code, base::Instant at);
  // We end it (kRequestTimeout, kCancelled), with our own words.
  std::unique_ptr<wire::Record>& finish(EndKind end, base::Instant at, std::string_view detail);

  std::uint16_t frontend() const { return record_->frontend; }
  base::Instant started_at() const { return started_at_; }
  const TimeAllowed& allowed() const { return allowed_; }
  const std::string& frontend_label() const;

  // Links of the transport's list of exchanges by start, oldest first.
  Exchange* older = nullptr;
  Exchange* newer = nullptr;
  std::uint32_t slot = 0;
  ConnectWait<Exchange> wait{this};
  // In the transport's chain of connections whose time it bounds itself.
  struct Connecting {
    Exchange* exchange;
    bool on = false;
    base::Instant since{};
    Connecting* older = nullptr;
    Connecting* newer = nullptr;
  } connecting{this};
  // HTTP/2: it is to open a connection, and the sockets it has opened for that, two at most at
  // once; or curl found no stream for it and would open one unasked.
  bool opens = false;
  bool found_none = false;
  std::array<int, 2> opened{-1, -1};

 private:
  friend int on_before_request(void* self, char*, char*, int, int);
  friend std::size_t on_header_line(char* line, std::size_t, std::size_t bytes, void* self);
  friend std::size_t on_body_bytes(char* data, std::size_t, std::size_t bytes, void* self);
  friend int on_resolve(void*, void*, void* self);
  friend curl_socket_t on_open(void* self, curlsocktype purpose, curl_sockaddr* address);
  friend int on_socket_options(void* self, curl_socket_t fd, curlsocktype purpose);

  void set_options();
  void renew_handle();
  void set_headers(const Conversation* conversation);
  void set_body(const Query& query);
  void take_header_line(std::string_view line);
  void take_body(std::string_view bytes);
  void fill_connection_facts();
  void note_connecting();

  const ExchangeShared& shared_;
  CURL* easy_;
  Reply reply_;
  std::unique_ptr<wire::Record> record_ = std::make_unique<wire::Record>();
  curl_slist* own_headers_ = nullptr;  // with an affinity header, and for turns, only
  curl_slist* affinity_ = nullptr;     // its line in them
  std::string salted_body_;
  std::string content_type_;
  std::array<char, CURL_ERROR_SIZE> error_text_{};
  base::Instant started_at_{};
  TimeAllowed allowed_{};
  base::Instant resolve_began_at_{};
  std::int32_t url_of_ = -1;  // frontend whose URL the handle has
  int http_status_ = 0;
  int os_error_ = 0;
  std::uint32_t attempts_ = 0;  // connections the request was handed to
  std::uint32_t resends_ = 0;   // by this handle since it was new
  std::uint32_t events_told_ = 0;
  bool curl_bounds_connecting_ = false;
  bool routed_ = false;  // own_headers_ name a conversation
  bool header_whole_ = false;
  bool other_version_ = false;  // than HTTP/2, which was asked for
  bool socket_connected_ = false;
};

}  // namespace tutti::target
