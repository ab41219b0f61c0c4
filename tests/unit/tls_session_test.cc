// TlsSession against OpenSSL's own server, both without sockets: every cut of the bytes, what TLS
// says beside the reply, and whom it trusts.

#include "agent/target/tls_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/support/certificate.h"

namespace tutti::target {
namespace {

using support::Certificate;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::size_t kReadBytes = 65'536;

// One connection's server end, in memory.
class ServerEnd {
 public:
  explicit ServerEnd(SSL_CTX* context)
      : ssl_(SSL_new(context), SSL_free), in_(BIO_new(BIO_s_mem())), out_(BIO_new(BIO_s_mem())) {
    SSL_set_bio(ssl_.get(), in_, out_);
    SSL_set_accept_state(ssl_.get());
  }
  SSL* ssl() const { return ssl_.get(); }
  void feed(std::string_view bytes) {
    BIO_write(in_, bytes.data(), static_cast<int>(bytes.size()));
    if (!SSL_is_init_finished(ssl_.get())) {
      SSL_do_handshake(ssl_.get());
    }
  }
  std::string take() {
    std::string bytes(BIO_ctrl_pending(out_), '\0');
    if (!bytes.empty()) {
      BIO_read(out_, bytes.data(), static_cast<int>(bytes.size()));
    }
    return bytes;
  }
  std::string read() {
    std::string all(1 << 20, '\0');
    std::size_t size = 0;
    int n = 0;
    while ((n = SSL_read(ssl_.get(), all.data() + size, static_cast<int>(all.size() - size))) > 0) {
      size += static_cast<std::size_t>(n);
    }
    return all.substr(0, size);
  }
  void write(const std::string& text) {
    EXPECT_EQ(SSL_write(ssl_.get(), text.data(), static_cast<int>(text.size())),
              static_cast<int>(text.size()));
  }

 private:
  std::unique_ptr<SSL, void (*)(SSL*)> ssl_;
  BIO* in_;
  BIO* out_;
};

std::string taken_from(TlsSession& session) {
  std::string bytes(session.to_send());
  session.mark_sent(bytes.size());
  return bytes;
}

class TlsPair : public testing::Test {
 protected:
  void serve(const Certificate& shape = {}, const std::string& host = "127.0.0.1") {
    server_context_.reset(SSL_CTX_new(TLS_server_method()));
    pem_ = testing::TempDir() + "tls-session-" + std::to_string(getpid()) + ".pem";
    support::make_certificate(shape, server_context_.get(), pem_);
    host_ = host;
  }
  void trust(TlsTrust trust) {
    context_ = std::make_unique<TlsContext>(trust, std::vector<std::string>{host_}, kReadBytes);
  }
  void TearDown() override { unlink(pem_.c_str()); }

  // Both ends speak until the client is done or has failed; `cut` bytes at a time reach it.
  TlsSession::Shaking shake(TlsSession& client, ServerEnd& server, std::size_t cut = kReadBytes) {
    EXPECT_TRUE(client.open(*context_, 0)) << client.problem();
    std::string_view rest;
    auto state = client.handshake({}, rest);
    for (int turn = 0; turn < 10 && state == TlsSession::Shaking::kWaits; ++turn) {
      server.feed(taken_from(client));
      const std::string bytes = server.take();
      for (std::size_t at = 0; at < bytes.size() && state == TlsSession::Shaking::kWaits;
           at += cut) {
        state = client.handshake(std::string_view(bytes).substr(at, cut), rest);
        if (state == TlsSession::Shaking::kDone) {
          std::string_view plain;
          const auto left = std::string(rest) + bytes.substr(std::min(at + cut, bytes.size()));
          EXPECT_EQ(client.decrypt(left, plain), TlsSession::Reading::kMore);
          EXPECT_THAT(plain, IsEmpty());
        }
      }
    }
    server.feed(taken_from(client));
    return state;
  }
  // A whole connection that both ends trust.
  void connect() {
    serve();
    trust({true, pem_});
    server_ = std::make_unique<ServerEnd>(server_context_.get());
    ASSERT_EQ(shake(client_, *server_), TlsSession::Shaking::kDone) << client_.problem();
  }
  static TlsSession::Writing encrypt(TlsSession& client, std::string text, std::size_t& taken) {
    const iovec part{text.data(), text.size()};
    return client.encrypt({&part, 1}, taken);
  }

  std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> server_context_{nullptr, SSL_CTX_free};
  std::string pem_;
  std::string host_;
  std::unique_ptr<TlsContext> context_;
  std::unique_ptr<ServerEnd> server_;
  TlsSession client_;
};

TEST_F(TlsPair, AnyCutOfHandshakeAndRecordsGivesTheSameBytes) {
  std::string said;
  for (std::size_t i = 1; i < 50; ++i) {
    said += std::string(i * 40, static_cast<char>('a' + i % 26));
  }
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    for (const std::size_t cut : {std::size_t{1}, std::size_t{7}, std::size_t{1000}, kReadBytes}) {
      serve();
      SSL_CTX_set_min_proto_version(server_context_.get(), version);
      SSL_CTX_set_max_proto_version(server_context_.get(), version);
      trust({true, pem_});
      ServerEnd server(server_context_.get());
      TlsSession client;
      ASSERT_EQ(shake(client, server, cut), TlsSession::Shaking::kDone) << client.problem();
      for (std::size_t i = 1, at = 0; i < 50; at += i * 40, ++i) {
        server.write(said.substr(at, i * 40));  // a record of its own
      }
      const std::string cipher = server.take();
      std::string heard;
      for (std::size_t at = 0; at < cipher.size(); at += cut) {
        std::string_view plain;
        ASSERT_EQ(client.decrypt(std::string_view(cipher).substr(at, cut), plain),
                  TlsSession::Reading::kMore);
        heard += plain;
      }
      EXPECT_EQ(heard, said) << "cut at every " << cut;
    }
  }
}

TEST_F(TlsPair, RenegotiationIsDeclinedAndHurtsNobody) {
  serve();
  SSL_CTX_set_max_proto_version(server_context_.get(), TLS1_2_VERSION);
  trust({true, pem_});
  server_ = std::make_unique<ServerEnd>(server_context_.get());
  ASSERT_EQ(shake(client_, *server_), TlsSession::Shaking::kDone) << client_.problem();
  server_->take();
  server_->write("before");
  ASSERT_EQ(SSL_renegotiate(server_->ssl()), 1);
  SSL_do_handshake(server_->ssl());
  std::string_view plain;
  EXPECT_EQ(client_.decrypt(server_->take(), plain), TlsSession::Reading::kMore);
  EXPECT_EQ(plain, "before");
  EXPECT_FALSE(client_.to_send().empty());  // "no"
  std::size_t taken = 0;
  EXPECT_EQ(encrypt(client_, "question", taken), TlsSession::Writing::kDone);
  EXPECT_EQ(taken, 8U);
}

TEST_F(TlsPair, AReadFullOfRecordsComesOutAtOnce) {
  connect();
  std::string said;
  while (said.size() < 60'000) {
    const std::string text(100, static_cast<char>('a' + said.size() / 100 % 26));
    server_->write(text);
    said += text;
  }
  const std::string cipher = server_->take();
  std::string heard;
  std::string_view plain;
  for (std::size_t at = 0; at < cipher.size(); at += kReadBytes) {
    client_.decrypt(std::string_view(cipher).substr(at, kReadBytes), plain);
    heard += plain;
  }
  EXPECT_EQ(heard, said);
}

TEST_F(TlsPair, ARequestInPiecesIsOneRecordAndALargeOneIsTakenInPortions) {
  connect();
  std::string head = "POST / HTTP/1.1\r\n";
  std::string body = "{\"p\":1}";
  const iovec parts[] = {{head.data(), head.size()}, {body.data(), body.size()}};
  std::size_t taken = 0;
  ASSERT_EQ(client_.encrypt(parts, taken), TlsSession::Writing::kDone);
  EXPECT_EQ(taken, head.size() + body.size());
  EXPECT_LT(client_.to_send().size(), taken + 60);  // one record's frame
  server_->feed(taken_from(client_));
  EXPECT_EQ(server_->read(), head + body);

  std::string large;
  for (int i = 0; i < 40'000; ++i) {
    large += std::to_string(i);
  }
  std::string_view left = large;
  std::string heard;
  while (!left.empty()) {
    const iovec part{const_cast<char*>(left.data()), left.size()};
    ASSERT_EQ(client_.encrypt({&part, 1}, taken), TlsSession::Writing::kDone);
    ASSERT_GT(taken, 0U);
    left.remove_prefix(taken);
    server_->feed(taken_from(client_));
    heard += server_->read();
  }
  EXPECT_EQ(heard, large);
}

TEST_F(TlsPair, TicketsAndKeyUpdatesAreNoSpeechAndAreAnswered) {
  connect();
  std::string_view plain;
  EXPECT_EQ(client_.decrypt(server_->take(), plain), TlsSession::Reading::kMore);  // tickets
  EXPECT_THAT(plain, IsEmpty());
  EXPECT_THAT(client_.to_send(), IsEmpty());
  for (int round = 0; round < 3; ++round) {
    ASSERT_EQ(SSL_key_update(server_->ssl(), SSL_KEY_UPDATE_REQUESTED), 1);
    ASSERT_EQ(SSL_do_handshake(server_->ssl()), 1);
    const std::string update = server_->take();
    ASSERT_FALSE(update.empty());
    EXPECT_EQ(client_.decrypt(update, plain), TlsSession::Reading::kMore);
    EXPECT_THAT(plain, IsEmpty());
    std::size_t taken = 0;
    ASSERT_EQ(encrypt(client_, "question", taken), TlsSession::Writing::kDone);
    server_->feed(taken_from(client_));
    EXPECT_EQ(server_->read(), "question");  // under our new keys
    server_->write("answer");
    client_.decrypt(server_->take(), plain);
    EXPECT_EQ(plain, "answer");
  }
}

TEST_F(TlsPair, AMessageOfTheHandshakeInHalvesMakesARequestWaitForIt) {
  serve();
  trust({true, pem_});
  // A ticket of more than one record.
  SSL_CTX_set_session_ticket_cb(
      server_context_.get(),
      [](SSL* ssl, void*) {
        const std::string data(4000, 't');
        return SSL_SESSION_set1_ticket_appdata(SSL_get_session(ssl), data.data(), data.size());
      },
      [](SSL*, SSL_SESSION*, const unsigned char*, std::size_t, SSL_TICKET_STATUS,
         void*) -> SSL_TICKET_RETURN { return SSL_TICKET_RETURN_USE; },
      nullptr);
  ASSERT_EQ(SSL_CTX_set_max_send_fragment(server_context_.get(), 512), 1);
  server_ = std::make_unique<ServerEnd>(server_context_.get());
  ASSERT_EQ(shake(client_, *server_), TlsSession::Shaking::kDone) << client_.problem();
  const std::string tickets = server_->take();
  ASSERT_GT(tickets.size(), 4000U);
  std::string_view plain;
  EXPECT_EQ(client_.decrypt(tickets.substr(0, 700), plain), TlsSession::Reading::kMore);
  std::size_t taken = 0;
  EXPECT_EQ(encrypt(client_, "question", taken), TlsSession::Writing::kWaits);
  EXPECT_EQ(taken, 0U);
  EXPECT_EQ(client_.decrypt(tickets.substr(700), plain), TlsSession::Reading::kMore);
  EXPECT_THAT(plain, IsEmpty());
  ASSERT_EQ(encrypt(client_, "question", taken), TlsSession::Writing::kDone);
  server_->feed(taken_from(client_));
  EXPECT_EQ(server_->read(), "question");
}

TEST_F(TlsPair, AGoodbyeIsHeardAfterTheLastWordsAndSaid) {
  connect();
  std::string_view plain;
  client_.decrypt(server_->take(), plain);
  server_->write("last words");
  SSL_shutdown(server_->ssl());
  EXPECT_EQ(client_.decrypt(server_->take(), plain), TlsSession::Reading::kClosed);
  EXPECT_EQ(plain, "last words");
  client_.say_goodbye();
  EXPECT_FALSE(client_.to_send().empty());
  server_->feed(taken_from(client_));
  char byte = 0;
  EXPECT_EQ(SSL_get_error(server_->ssl(), SSL_read(server_->ssl(), &byte, 1)),
            SSL_ERROR_ZERO_RETURN);
}

TEST_F(TlsPair, ABentRecordIsBrokenAndSaysWhy) {
  connect();
  std::string_view plain;
  client_.decrypt(server_->take(), plain);
  server_->write("text");
  std::string cipher = server_->take();
  cipher.back() = static_cast<char>(cipher.back() ^ 1);
  EXPECT_EQ(client_.decrypt(cipher, plain), TlsSession::Reading::kBroken);
  EXPECT_THAT(plain, IsEmpty());
  EXPECT_THAT(client_.problem(), HasSubstr("TLS: "));
  EXPECT_FALSE(client_.to_send().empty());  // the alert
  client_.say_goodbye();                    // says no more
}

TEST_F(TlsPair, TheNextConnectionResumesTheNewestSession) {
  connect();
  std::string_view plain;
  client_.decrypt(server_->take(), plain);
  EXPECT_EQ(SSL_session_reused(server_->ssl()), 0);
  client_.say_goodbye();
  client_.close();
  ServerEnd second(server_context_.get());
  ASSERT_EQ(shake(client_, second), TlsSession::Shaking::kDone) << client_.problem();
  EXPECT_EQ(SSL_session_reused(second.ssl()), 1);
}

TEST_F(TlsPair, OnlyHttp11IsOffered) {
  serve();
  trust({true, pem_});
  SSL_CTX_set_alpn_select_cb(
      server_context_.get(),
      [](SSL*, const unsigned char** out, unsigned char* out_size, const unsigned char* in,
         unsigned in_size, void* seen) {
        static_cast<std::string*>(seen)->assign(reinterpret_cast<const char*>(in), in_size);
        *out = in + 1;
        *out_size = in[0];
        return SSL_TLSEXT_ERR_OK;
      },
      &host_);
  ServerEnd server(server_context_.get());
  EXPECT_EQ(shake(client_, server), TlsSession::Shaking::kDone);
  EXPECT_EQ(host_, "\x08http/1.1");
}

struct Refusal {
  const char* what;
  Certificate certificate;
  const char* host;
  bool trusted;
  const char* says;
};

TEST_F(TlsPair, CertificatesThatDoNotFitAreRefusedInWords) {
  const Refusal refusals[] = {
      {"a stranger", {}, "127.0.0.1", false, "self-signed certificate"},
      {"another address", {"IP:127.0.0.2"}, "127.0.0.1", true, "not for \"127.0.0.1\""},
      {"another name", {"DNS:a.example"}, "b.example", true, "not for \"b.example\""},
      {"expired", {"IP:127.0.0.1", -7200, -3600}, "127.0.0.1", true, "expired"},
      {"too early", {"IP:127.0.0.1", 3600, 7200}, "127.0.0.1", true, "not yet valid"},
  };
  for (const auto& each : refusals) {
    serve(each.certificate, each.host);
    trust({true, each.trusted ? pem_ : ""});
    ServerEnd server(server_context_.get());
    TlsSession client;
    EXPECT_EQ(shake(client, server), TlsSession::Shaking::kFailed) << each.what;
    EXPECT_THAT(client.problem(), HasSubstr("certificate is not accepted")) << each.what;
    EXPECT_THAT(client.problem(), HasSubstr(each.says)) << each.what;
    trust({false, ""});
    ServerEnd again(server_context_.get());
    TlsSession careless;
    EXPECT_EQ(shake(careless, again), TlsSession::Shaking::kDone) << each.what;
  }
}

TEST_F(TlsPair, NamesThatFitAreAcceptedAndSentAhead) {
  for (const char* host : {"a.example", "a.example.", "x.b.example"}) {
    serve({"DNS:a.example,DNS:*.b.example"}, host);
    trust({true, pem_});
    ServerEnd server(server_context_.get());
    TlsSession client;
    EXPECT_EQ(shake(client, server), TlsSession::Shaking::kDone) << client.problem();
    const std::string name = SSL_get_servername(server.ssl(), TLSEXT_NAMETYPE_host_name);
    EXPECT_EQ(name, std::string(host) == "a.example." ? "a.example" : host);
  }
  serve({"IP:::1"}, "::1");
  trust({true, pem_});
  ServerEnd server(server_context_.get());
  EXPECT_EQ(shake(client_, server), TlsSession::Shaking::kDone) << client_.problem();
  EXPECT_EQ(SSL_get_servername(server.ssl(), TLSEXT_NAMETYPE_host_name), nullptr);
}

TEST_F(TlsPair, AFileWithoutCertificatesIsNamed) {
  serve();
  trust({true, "/no/such/file.pem"});
  EXPECT_FALSE(client_.open(*context_, 0));
  EXPECT_THAT(client_.problem(), HasSubstr("SSL_CERT_FILE \"/no/such/file.pem\""));
}

TEST_F(TlsPair, WhatIsNotTlsFailsAtOnce) {
  serve();
  trust({true, ""});
  ASSERT_TRUE(client_.open(*context_, 0));
  std::string_view rest;
  EXPECT_EQ(client_.handshake({}, rest), TlsSession::Shaking::kWaits);
  EXPECT_EQ(client_.handshake("HTTP/1.1 400 Bad Request\r\n\r\n", rest),
            TlsSession::Shaking::kFailed);
  EXPECT_THAT(client_.problem(), HasSubstr("wrong version number"));
}

}  // namespace
}  // namespace tutti::target
