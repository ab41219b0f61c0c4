#pragma once

// IP addresses as values: parsed, printed, compared, and asked of this host. Whole blocks count as
// the host's own on loopback interfaces, where every address of the prefix is local. Link-local
// IPv6 addresses are not spoken of: they need an interface beside them. Any thread.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::sys {

struct IpAddress {
  bool v6 = false;
  std::array<std::uint8_t, 16> bytes{};  // network order; IPv4 in the first four

  friend auto operator<=>(const IpAddress&, const IpAddress&) = default;
};

// Digits only, no name, no brackets, no zone.
std::optional<IpAddress> parse_ip(std::string_view text);
std::string text_of(const IpAddress& address);

// `block` is ADDRESS or ADDRESS/BITS.
bool covers(std::string_view block, const IpAddress& address);

// What this host answers to, by its interfaces, in the form covers() reads.
std::vector<std::string> own_addresses();

// 0, or the errno of binding to it: EADDRNOTAVAIL for an address that is not this host's.
int bind_error(const IpAddress& address);

}  // namespace tutti::sys
