#include "agent/target/exchange.h"

#include <fmt/format.h>
#include <strings.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <cstring>

#include "agent/target/credentials.h"
#include "agent/target/record_start.h"
#include "common/base/check.h"

namespace tutti::target {
namespace {

// curl keeps a read buffer per handle, 16 KB unless told. Events of a stream are far smaller; a
// large document takes twice the reads.
constexpr long kReadBufferBytes = 8192;
constexpr std::size_t kSampleDigits = 10;  // of 32 bits
// "[", 16 hex digits, "] ": what a salted prompt begins with.
constexpr std::size_t kSaltTextBytes = 19;

std::uint32_t to_us(curl_off_t value) {
  return static_cast<std::uint32_t>(std::clamp<curl_off_t>(value, 0, UINT_MAX));
}

curl_off_t time_of(CURL* easy, CURLINFO what) {
  curl_off_t us = 0;
  curl_easy_getinfo(easy, what, &us);
  return us;
}

void add_relaxed(std::atomic<std::uint64_t>& gauge, std::uint64_t n) {
  gauge.store(gauge.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
}

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!text.empty() && blank(text.front())) {
    text.remove_prefix(1);
  }
  while (!text.empty() && blank(text.back())) {
    text.remove_suffix(1);
  }
  return text;
}

}  // namespace

// ---- callbacks: curl → exchange --------------------------------------------------------------

int on_before_request(void* self, char*, char*, int, int) {
  auto& exchange = *static_cast<Exchange*>(self);
  if (exchange.opens || exchange.connecting.on) {
    exchange.shared_.sockets->connection_stands(exchange);
  }
  // curl sends again by itself when a kept connection turns out dead before any reply byte. Once is
  // recorded; a second time would be a retry loop.
  if (++exchange.attempts_ > 2) {
    return CURL_PREREQFUNC_ABORT;
  }
  if (exchange.attempts_ == 1) {
    exchange.record_->sent_at = exchange.shared_.clock->mono();
  } else {
    exchange.record_->resent = true;
  }
  return CURL_PREREQFUNC_OK;
}

std::size_t on_header_line(char* line, std::size_t, std::size_t bytes, void* self) {
  auto& exchange = *static_cast<Exchange*>(self);
  exchange.take_header_line({line, bytes});
  return exchange.other_version_ ? 0 : bytes;
}

std::size_t on_body_bytes(char* data, std::size_t, std::size_t bytes, void* self) {
  auto& exchange = *static_cast<Exchange*>(self);
  exchange.take_body({data, bytes});
  return exchange.reply_.broken() ? 0 : bytes;
}

int on_resolve(void*, void*, void* self) {
  auto& exchange = *static_cast<Exchange*>(self);
  exchange.note_connecting();
  exchange.resolve_began_at_ = exchange.shared_.clock->mono();
  return 0;
}

curl_socket_t on_open(void* self, curlsocktype, curl_sockaddr* address) {
  auto& exchange = *static_cast<Exchange*>(self);
  exchange.note_connecting();
  if (exchange.resolve_began_at_.is_set()) {
    const base::Duration took = exchange.shared_.clock->mono() - exchange.resolve_began_at_;
    exchange.record_->dns_us = to_us(took.ns / 1000);
    exchange.resolve_began_at_ = {};
  }
  exchange.socket_connected_ = false;
  return exchange.shared_.sockets->open_socket(*address, exchange, exchange.socket_connected_,
                                               exchange.os_error_);
}

int on_socket_options(void* self, curl_socket_t, curlsocktype) {
  return static_cast<Exchange*>(self)->socket_connected_ ? CURL_SOCKOPT_ALREADY_CONNECTED
                                                         : CURL_SOCKOPT_OK;
}

// ---- configuration ---------------------------------------------------------------------------

namespace {

// A header as curl's list wants it: "Name: value", and "Name;" for an empty value.
curl_slist* append_header(curl_slist* list, const wire::Header& header) {
  const std::string line = header.value.empty() ? fmt::format("{};", header.name)
                                                : fmt::format("{}: {}", header.name, header.value);
  return curl_slist_append(list, line.c_str());
}

bool names(const wire::Header& header, const char* name) {
  return header.name.size() == std::strlen(name) && curl_strequal(header.name.c_str(), name) != 0;
}

}  // namespace

curl_slist* header_list(const wire::TargetSpec& target, const Conversation* conversation,
                        curl_slist*& affinity) {
  curl_slist* list = nullptr;
  for (const auto& header : target.headers) {
    list = append_header(list, header);
  }
  for (const auto& name : target.routing_headers) {
    if (conversation != nullptr) {
      list = append_header(list, {name, conversation->id});
    }
  }
  if (!target.affinity_header.empty()) {
    const std::string room(kSampleDigits, '0');
    list = append_header(list, {target.affinity_header, kAffinityValue + room});
    affinity = list;
    while (affinity->next != nullptr) {
      affinity = affinity->next;
    }
  }
  for (const char* name : {"Accept", "Content-Type", "Expect"}) {
    if (std::none_of(target.headers.begin(), target.headers.end(),
                     [name](const wire::Header& h) { return names(h, name); })) {
      list = curl_slist_append(list, fmt::format("{}:", name).c_str());
    }
  }
  return list;
}

Exchange::Exchange(const ExchangeShared& shared)
    : shared_(shared),
      easy_(curl_easy_init()),
      reply_(shared.config->target->api, shared.config->videos, shared.known_form) {
  TUTTI_CHECK(easy_ != nullptr);
  if (!shared_.config->target->affinity_header.empty()) {
    own_headers_ = header_list(*shared_.config->target, nullptr, affinity_);
  }
  set_options();
  content_type_.reserve(128);
}

void Exchange::set_options() {
  configure_handle(easy_, shared_);
  curl_easy_setopt(easy_, CURLOPT_PRIVATE, this);
  curl_easy_setopt(easy_, CURLOPT_POST, 1L);
  curl_easy_setopt(easy_, CURLOPT_BUFFERSIZE, kReadBufferBytes);
  curl_easy_setopt(easy_, CURLOPT_HTTPHEADER,
                   own_headers_ != nullptr ? own_headers_ : shared_.headers);
  curl_easy_setopt(easy_, CURLOPT_ERRORBUFFER, error_text_.data());
  curl_easy_setopt(easy_, CURLOPT_PREREQFUNCTION, on_before_request);
  curl_easy_setopt(easy_, CURLOPT_PREREQDATA, this);
  curl_easy_setopt(easy_, CURLOPT_HEADERFUNCTION, on_header_line);
  curl_easy_setopt(easy_, CURLOPT_HEADERDATA, this);
  curl_easy_setopt(easy_, CURLOPT_WRITEFUNCTION, on_body_bytes);
  curl_easy_setopt(easy_, CURLOPT_WRITEDATA, this);
  curl_easy_setopt(easy_, CURLOPT_RESOLVER_START_FUNCTION, on_resolve);
  curl_easy_setopt(easy_, CURLOPT_RESOLVER_START_DATA, this);
  curl_easy_setopt(easy_, CURLOPT_OPENSOCKETFUNCTION, on_open);
  curl_easy_setopt(easy_, CURLOPT_OPENSOCKETDATA, this);
  curl_easy_setopt(easy_, CURLOPT_SOCKOPTFUNCTION, on_socket_options);
  curl_easy_setopt(easy_, CURLOPT_SOCKOPTDATA, this);
}

// libcurl counts what it sends again over the whole life of a handle, and fails the sixth time. A
// query may take two of them.
void Exchange::renew_handle() {
  constexpr std::uint32_t kResendsMax = 3;
  if (resends_ < kResendsMax) {
    return;
  }
  curl_easy_reset(easy_);
  set_options();
  curl_bounds_connecting_ = false;
  url_of_ = -1;
  resends_ = 0;
}

Exchange::~Exchange() {
  curl_easy_cleanup(easy_);
  curl_slist_free_all(own_headers_);
}

Exchange* Exchange::of(CURL* easy) {
  void* self = nullptr;
  curl_easy_getinfo(easy, CURLINFO_PRIVATE, &self);
  return static_cast<Exchange*>(self);
}

const std::string& Exchange::frontend_label() const {
  return shared_.config->frontends[record_->frontend].label;
}

// ---- one query -------------------------------------------------------------------------------

// Turns name their conversation: their handle has a list of its own, made anew for each.
void Exchange::set_headers(const Conversation* conversation) {
  const wire::TargetSpec& target = *shared_.config->target;
  if (target.routing_headers.empty() || (conversation == nullptr && !routed_)) {
    return;
  }
  curl_slist_free_all(own_headers_);
  affinity_ = nullptr;
  own_headers_ = header_list(target, conversation, affinity_);
  routed_ = conversation != nullptr;
  curl_easy_setopt(easy_, CURLOPT_HTTPHEADER, own_headers_);
}

void Exchange::set_body(const Query& query) {
  const data::BodyRow row = shared_.config->bodies->row(query.command.sample);
  std::string_view body = row.body;
  if (query.command.salted && row.splice >= 0) {
    const auto splice = static_cast<std::size_t>(row.splice);
    std::array<char, kSaltTextBytes> salt{};
    char* const end =  // the body goes on with the mark's "]"
        query.conversation != nullptr
            ? fmt::format_to_n(salt.data(), salt.size(), "[salt: {:04x}", query.command.salt).out
            : fmt::format_to_n(salt.data(), salt.size(), "[{:016x}] ", query.command.salt).out;
    salted_body_.assign(body.substr(0, splice));
    salted_body_.append(salt.data(), static_cast<std::size_t>(end - salt.data()));
    salted_body_.append(body.substr(splice));
    body = salted_body_;
  }
  curl_easy_setopt(easy_, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
  curl_easy_setopt(easy_, CURLOPT_POSTFIELDS, body.data());
  std::array<char, 20> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), body.size()).ptr;
  record_->bytes_up =
      static_cast<std::uint32_t>(shared_.config->frontends[query.frontend].head_bytes +
                                 (end - digits.data()) + static_cast<std::ptrdiff_t>(body.size()));
  if (query.conversation != nullptr) {
    record_->bytes_up += static_cast<std::uint32_t>(query.conversation->routing_lines.size());
  }
  if (affinity_ != nullptr) {
    char* const number = affinity_->data + shared_.config->target->affinity_header.size() +
                         std::string_view(": ").size() + std::string_view(kAffinityValue).size();
    char* const stop = std::to_chars(number, number + kSampleDigits, affinity_of(query)).ptr;
    *stop = '\0';
    record_->bytes_up += static_cast<std::uint32_t>(stop - number);
  }
}

void Exchange::begin(const Query& query, base::Instant now) {
  begin_record(*record_, query, shared_.config->worker);
  started_at_ = now;
  allowed_ = time_allowed(*shared_.config->target, query);
  resolve_began_at_ = {};
  http_status_ = 0;
  os_error_ = 0;
  resends_ += attempts_ > 1 ? attempts_ - 1 : 0;
  attempts_ = 0;
  renew_handle();
  events_told_ = 0;
  header_whole_ = false;
  other_version_ = false;
  error_text_[0] = '\0';
  content_type_.clear();
  if (url_of_ != query.frontend) {
    curl_easy_setopt(easy_, CURLOPT_CURLU, shared_.urls[query.frontend]);
    url_of_ = query.frontend;
  }
  set_headers(query.conversation);
  set_body(query);
  const wire::TargetSpec& target = *shared_.config->target;
  reply_.start(target.streaming, target.stamp_every_chunk);
}

void Exchange::bound_connecting(bool bounded) {
  if (bounded != curl_bounds_connecting_) {
    target::bound_connecting(easy_, *shared_.config->target, bounded);
    curl_bounds_connecting_ = bounded;
  }
}

void Exchange::note_connecting() {
  if (!curl_bounds_connecting_ && !connecting.on) {
    shared_.sockets->connection_begins(*this);
  }
}

void Exchange::take_header_line(std::string_view line) {
  if (!record_->first_byte_at.is_set()) {  // curl tells of all lines of one read at once
    record_->first_byte_at = shared_.clock->mono();
    shared_.gauges->last_response_ns.store(record_->first_byte_at.ns, std::memory_order_relaxed);
  }
  record_->bytes_down += static_cast<std::uint32_t>(line.size());
  if (header_whole_) {
    return;  // trailers of a chunked body
  }
  constexpr std::string_view kContentType = "content-type:";
  if (line.size() > 5 && line.substr(0, 5) == "HTTP/") {
    const std::size_t space = line.find(' ');
    other_version_ = shared_.config->target->streams_max > 0 && line[5] != '2';
    http_status_ = 0;
    if (space != std::string_view::npos) {
      std::from_chars(line.data() + space + 1, line.data() + line.size(), http_status_);
    }
    content_type_.clear();
  } else if (line.size() >= kContentType.size() &&
             strncasecmp(line.data(), kContentType.data(), kContentType.size()) == 0) {
    content_type_ = trimmed(line.substr(kContentType.size()));
  } else if (trimmed(line).empty() && (http_status_ >= 200 || http_status_ == 101)) {
    header_whole_ = true;
    reply_.on_header(http_status_, content_type_);
  }
}

void Exchange::take_body(std::string_view bytes) {
  const base::Instant now = shared_.clock->mono();
  record_->bytes_down += static_cast<std::uint32_t>(bytes.size());
  reply_.on_body(bytes, now);
  const std::uint32_t events = reply_.content_events();
  if (events != events_told_) {
    add_relaxed(shared_.gauges->output_tokens, events - events_told_);
    events_told_ = events;
  }
  shared_.gauges->last_response_ns.store(now.ns, std::memory_order_relaxed);
}

void Exchange::fill_connection_facts() {
  if (wait.on) {
    return;  // curl was never asked; what it knows is of the query before
  }
  long new_connections = 0;
  curl_easy_getinfo(easy_, CURLINFO_NUM_CONNECTS, &new_connections);
  record_->connection_reused = attempts_ > 0 && new_connections == 0;
  if (record_->connection_reused || new_connections == 0) {
    record_->dns_us = 0;
    return;
  }
  const curl_off_t resolved = time_of(easy_, CURLINFO_NAMELOOKUP_TIME_T);
  const curl_off_t connected = time_of(easy_, CURLINFO_CONNECT_TIME_T);
  const curl_off_t secured = time_of(easy_, CURLINFO_APPCONNECT_TIME_T);
  record_->connect_us = to_us(connected - resolved);
  record_->tls_us = secured > 0 ? to_us(secured - connected) : 0;
}

std::unique_ptr<wire::Record>& Exchange::finish(CURLcode code, base::Instant at) {
  if (code == CURLE_OK) {
    return finish(EndKind::kComplete, at, {});
  }
  if (other_version_) {
    return finish(EndKind::kBadReply, at,
                  fmt::format("{}: answered in HTTP/1.1 where http_version asks for HTTP/2",
                              frontend_label()));
  }
  if (code == CURLE_COULDNT_CONNECT && os_error_ == 0) {
    long error = 0;
    curl_easy_getinfo(easy_, CURLINFO_OS_ERRNO, &error);
    os_error_ = static_cast<int>(error);
  }
  if (is_shortage_here(os_error_)) {
    add_relaxed(shared_.gauges->connect_shortages, 1);
  }
  CurlFacts facts;
  facts.code = code;
  facts.os_error = os_error_;
  facts.header_seen = header_whole_;
  facts.curl_text = error_text_.data();
  facts.frontend = frontend_label();
  facts.prior_knowledge = shared_.config->target->streams_max > 0 && attempts_ > 0 &&
                          !record_->first_byte_at.is_set() &&
                          !shared_.config->frontends[record_->frontend].tls;
  if (shared_.proxy.is_set()) {
    long status = 0;
    curl_easy_getinfo(easy_, CURLINFO_HTTP_CONNECTCODE, &status);
    facts.connect_status = static_cast<int>(status);
    facts.proxy = shared_.proxy.label;
  }
  return finish(end_kind_of(facts), at, end_detail_of(facts));
}

std::unique_ptr<wire::Record>& Exchange::finish(EndKind end, base::Instant at,
                                                std::string_view detail) {
  fill_connection_facts();
  reply_.on_end(end, at, *record_, detail);
  if (!record_->error_message.empty()) {
    hide_credentials(*shared_.config->target, shared_.proxy, record_->error_message);
  }
  record_->done_at = at;
  if (record_->completion_tokens > 0) {
    // Usage is the better count; the gauge only ever grows.
    const auto told = static_cast<std::int64_t>(reply_.content_events());
    add_relaxed(shared_.gauges->output_tokens, static_cast<std::uint64_t>(std::max<std::int64_t>(
                                                   record_->completion_tokens - told, 0)));
  }
  return record_;
}

}  // namespace tutti::target
