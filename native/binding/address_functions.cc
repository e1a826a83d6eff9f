#include "address_functions.h"

#include <unistd.h>

#include <array>
#include <cstdio>

#include "arguments.h"
#include "interface_address.h"
#include "neighbour.h"

namespace holdfast::binding {
namespace {

constexpr double kMostFds = 2147483647.0;

/// The value of a call that answers a negative errno.
int checked(Napi::Env env, const char* call, int result) {
  if (result < 0) throw errno_error(env, call, -result);
  return result;
}

Napi::Value list_addresses_value(const Napi::CallbackInfo& info) {
  const auto family = integer_argument(info, 0, "family", 4, 6) == 4 ? net::Family::ipv4 : net::Family::ipv6;
  std::vector<net::InterfaceAddress> found;
  checked(info.Env(), "list addresses", net::list_addresses(family, found));
  const auto list = Napi::Array::New(info.Env(), found.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto one = Napi::Object::New(info.Env());
    one.Set("interface", found[i].interface);
    one.Set("address", found[i].address.host());
    one.Set("prefixLength", found[i].length);
    one.Set("validSeconds", found[i].valid);
    list.Set(static_cast<std::uint32_t>(i), one);
  }
  return list;
}

Napi::Value lease_address_value(const Napi::CallbackInfo& info) {
  const std::string interface = string_argument(info, 0, "interface");
  const double until = number_argument(info, 2, "until");
  return Napi::Number::New(info.Env(), checked(info.Env(), "add the address", net::lease_address(interface, address_argument(info, 1), until)));
}

Napi::Value remove_address_value(const Napi::CallbackInfo& info) {
  net::InterfaceAddress which;
  which.interface = string_argument(info, 0, "interface");
  which.address = address_argument(info, 1);
  which.length = static_cast<std::uint8_t>(integer_argument(info, 2, "prefixLength", 0, 128));
  checked(info.Env(), "remove the address", net::remove_address(which));
  return info.Env().Undefined();
}

Napi::Value tell_neighbours_value(const Napi::CallbackInfo& info) {
  const std::string what = string_argument(info, 0, "what");
  if (what != "announce" && what != "probe") throw Napi::TypeError::New(info.Env(), "what must be announce or probe");
  const auto kind = what == "announce" ? net::Neighbour::announce : net::Neighbour::probe;
  checked(info.Env(), "tell the neighbours", net::tell_neighbours(kind, string_argument(info, 1, "interface"), address_argument(info, 2)));
  return info.Env().Undefined();
}

Napi::Value watch_neighbours_value(const Napi::CallbackInfo& info) {
  const int fd = net::watch_neighbours(string_argument(info, 0, "interface"), address_argument(info, 1));
  return Napi::Number::New(info.Env(), checked(info.Env(), "watch the neighbours", fd));
}

Napi::Value read_claim_value(const Napi::CallbackInfo& info) {
  const int fd = static_cast<int>(integer_argument(info, 0, "fd", 0, kMostFds));
  const auto claim = net::read_claim(fd, string_argument(info, 1, "interface"), address_argument(info, 2));
  if (!claim) return info.Env().Undefined();
  std::array<char, 18> text{};
  const net::Mac& mac = *claim;
  std::snprintf(text.data(), text.size(), "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
  return Napi::String::New(info.Env(), text.data());
}

Napi::Value unwatch_neighbours_value(const Napi::CallbackInfo& info) {
  ::close(static_cast<int>(integer_argument(info, 0, "fd", 0, kMostFds)));
  return info.Env().Undefined();
}

}  // namespace

void set_address_functions(Napi::Env env, Napi::Object exports) {
  const auto set = [&](const char* name, Napi::Value (*function)(const Napi::CallbackInfo&)) {
    exports.Set(name, Napi::Function::New(env, function, name));
  };
  set("listAddresses", list_addresses_value);
  set("leaseAddress", lease_address_value);
  set("removeAddress", remove_address_value);
  set("tellNeighbours", tell_neighbours_value);
  set("watchNeighbours", watch_neighbours_value);
  set("readClaim", read_claim_value);
  set("unwatchNeighbours", unwatch_neighbours_value);
}

}  // namespace holdfast::binding
