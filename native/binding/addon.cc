#include <arpa/inet.h>
#include <napi.h>

#include <cerrno>
#include <cstdlib>

#include "address_functions.h"
#include "arguments.h"
#include "conntrack_functions.h"
#include "descriptor_functions.h"
#include "dns_object.h"
#include "errno_error.h"
#include "local_routes.h"
#include "nft_object.h"
#include "nft_watcher_object.h"
#include "process.h"
#include "proxy_object.h"
#include "values.h"

namespace holdfast::binding {
namespace {

Napi::Value lock_file_value(const Napi::CallbackInfo& info) {
  const int fd = lock_file(string_argument(info, 0, "path"));
  if (fd < 0) throw errno_error(info.Env(), "lockFile", -fd);
  return Napi::Number::New(info.Env(), fd);
}

Napi::Value peer_uid_value(const Napi::CallbackInfo& info) {
  uid_t uid = 0;
  if (!peer_uid(static_cast<int>(integer_argument(info, 0, "fd", 0, 2147483647.0)), uid)) throw errno_error(info.Env(), "peerUid", errno);
  return Napi::Number::New(info.Env(), uid);
}

/// `10.0.0.0/8`, checked by the caller; what is none is a TypeError all the same.
net::Prefix prefix_argument(Napi::Env env, const std::string& text) {
  const std::size_t slash = text.find('/');
  const std::string host = text.substr(0, slash);
  net::Prefix prefix;
  prefix.network.family = host.find(':') == std::string::npos ? net::Family::ipv4 : net::Family::ipv6;
  const bool v4 = prefix.network.family == net::Family::ipv4;
  const int most = v4 ? 32 : 128;
  const int length = slash == std::string::npos ? -1 : std::atoi(text.c_str() + slash + 1);
  if (::inet_pton(v4 ? AF_INET : AF_INET6, host.c_str(), prefix.network.bytes.data()) != 1 || length < 0 || length > most)
    throw Napi::TypeError::New(env, "prefixes must be strings such as 10.0.0.0/8");
  prefix.length = static_cast<std::uint8_t>(length);
  return prefix;
}

Napi::Value set_local_routes_value(const Napi::CallbackInfo& info) {
  if (!info[0].IsArray()) throw Napi::TypeError::New(info.Env(), "prefixes must be an array");
  const auto list = info[0].As<Napi::Array>();
  std::vector<net::Prefix> wanted;
  for (std::uint32_t i = 0; i < list.Length(); ++i) {
    const Napi::Value item = list.Get(i);
    if (!item.IsString()) throw Napi::TypeError::New(info.Env(), "prefixes must be strings such as 10.0.0.0/8");
    wanted.push_back(prefix_argument(info.Env(), item.As<Napi::String>().Utf8Value()));
  }
  std::string failed;
  const int error = net::set_local_routes(wanted, failed);
  if (error != 0) throw errno_error(info.Env(), failed, -error);
  return info.Env().Undefined();
}

Napi::Object init(Napi::Env env, Napi::Object exports) {
  exports.Set("Proxy", ProxyObject::define(env));
  exports.Set("DnsResponder", DnsObject::define(env));
  exports.Set("NftSocket", NftObject::define(env));
  exports.Set("NftWatcher", NftWatcherObject::define(env));
  exports.Set("setLocalRoutes", Napi::Function::New(env, set_local_routes_value, "setLocalRoutes"));
  set_address_functions(env, exports);
  set_descriptor_functions(env, exports);
  set_conntrack_functions(env, exports);
  exports.Set("timeBounds", bounds_value(env));
  exports.Set("lockFile", Napi::Function::New(env, lock_file_value, "lockFile"));
  exports.Set("peerUid", Napi::Function::New(env, peer_uid_value, "peerUid"));
  return exports;
}

}  // namespace
}  // namespace holdfast::binding

static Napi::Object init_addon(Napi::Env env, Napi::Object exports) { return holdfast::binding::init(env, exports); }

NODE_API_MODULE(holdfast, init_addon)
