#include "coordinator/conduct/reach.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>

#include "common/spec/redact.h"
#include "common/text/base64.h"

namespace tutti::conduct {
namespace {

constexpr std::size_t kPemBytesMax = std::size_t{256} << 10;  // each connection keeps a copy

// Empty: read into `pem`.
std::string problem_of(const std::string& path, std::string_view kind, std::string& pem) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return std::strerror(errno);
  }
  pem.assign(std::istreambuf_iterator<char>(file), {});
  if (file.bad()) {
    return "cannot be read";
  }
  if (pem.size() > kPemBytesMax) {
    return fmt::format("has {} bytes; {} at most: leave out what is not needed", pem.size(),
                       kPemBytesMax);
  }
  const std::string begin = "-----BEGIN ";
  std::size_t at = 0;
  while ((at = pem.find(begin, at)) != std::string::npos) {
    at += begin.size();
    const std::string_view name(pem.data() + at, pem.find('\n', at) - at);
    if (name.find("ENCRYPTED") != std::string_view::npos) {
      return "is locked by a passphrase: give it without one (openssl pkey -in FILE -out NEW)";
    }
    if (name.find(kind) != std::string_view::npos) {
      return {};
    }
  }
  return fmt::format("is no PEM file with a {}", kind == "KEY" ? "private key" : "certificate");
}

}  // namespace

void add_reach(const spec::Config& config, wire::TargetSpec& target) {
  const spec::Distributed& distributed = config.distributed;
  if (distributed.user_password) {
    target.headers.insert(target.headers.begin(),
                          {"Authorization", "Basic " + text::base64(*distributed.user_password)});
  }
  for (const auto& entry : distributed.headers.entries) {
    target.headers.push_back({entry.key, entry.value.text});
  }
  target.proxy = distributed.proxy.value_or("");
  target.streams_max = distributed.http_version == spec::HttpVersion::kHttp2
                           ? static_cast<std::uint32_t>(distributed.streams_per_connection)
                           : 0;
}

base::Status read_certificates(const spec::Distributed& distributed, wire::TargetSpec& target) {
  std::string problems;
  const auto read = [&problems](const char* field, const std::optional<std::string>& path,
                                std::string_view kind, std::string& pem) {
    const std::string problem = path ? problem_of(*path, kind, pem) : "";
    if (!problem.empty()) {
      problems += fmt::format("{}distributed.{}: \"{}\" {}", problems.empty() ? "" : "; ", field,
                              *path, problem);
    }
  };
  read("ca_file", distributed.ca_file, "CERTIFICATE", target.ca_pem);
  read("client_cert_file", distributed.client_cert_file, "CERTIFICATE", target.client_cert_pem);
  read("client_key_file", distributed.client_key_file, "KEY", target.client_key_pem);
  return problems.empty() ? base::Status{} : base::fail(base::ExitCode::kInput, problems);
}

std::vector<std::string> secrets_of(const spec::Config& config) {
  std::vector<std::string> found;
  const auto add = [&found](std::string_view text) {
    if (!text.empty()) {
      found.emplace_back(text);
    }
  };
  // One may be put together from variables of the environment: its parts are secrets too.
  const auto add_login = [&add](std::string_view login) {
    add(login);
    add(login.substr(std::min(login.find(':') + 1, login.size())));
  };
  const spec::Distributed& distributed = config.distributed;
  add(config.endpoint_config.api_key.value_or(""));
  add_login(distributed.user_password.value_or(""));
  for (const auto& entry : distributed.headers.entries) {
    const std::string& value = entry.value.text;
    if (spec::is_secret_key(entry.key) || entry.key == "Cookie") {  // others may be a HOME, a PATH
      add(value);
      add(std::string_view(value).substr(std::min(value.rfind(' ') + 1, value.size())));
    }
  }
  if (const std::string proxy = distributed.proxy.value_or(""); proxy.find('@') != proxy.npos) {
    add(proxy);
    const std::size_t from = std::min(proxy.find("://") + 3, proxy.size());
    const std::size_t at = proxy.rfind('@');
    add_login(std::string_view(proxy).substr(from, at > from ? at - from : 0));
  }
  return found;
}

}  // namespace tutti::conduct
