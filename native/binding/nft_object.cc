#include "nft_object.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

#include "arguments.h"
#include "errno_error.h"
#include "nft_values.h"

namespace holdfast::binding {
namespace {

constexpr std::array<std::string_view, 6> kKinds{"table", "chain", "rule", "set", "element", "counter"};

/// As of node:fs, with the index of the plan's operation when it is about one.
[[noreturn]] void fail(Napi::Env env, const char* call, const nft::Outcome& outcome) {
  Napi::Error error = errno_error(env, outcome.text.empty() ? call : std::string(call) + ": " + outcome.text, -outcome.error);
  if (outcome.operation >= 0) error.Set("operation", Napi::Number::New(env, static_cast<double>(outcome.operation)));
  throw error;
}

std::string name_argument(const Napi::CallbackInfo& info, std::size_t index, const char* name) {
  return info[index].IsUndefined() ? "" : string_argument(info, index, name);
}

}  // namespace

Napi::Function NftObject::define(Napi::Env env) {
  return DefineClass(env, "NftSocket",
                     {InstanceMethod<&NftObject::apply>("apply"), InstanceMethod<&NftObject::knows_flags>("knowsFlags"), InstanceMethod<&NftObject::dump>("dump"),
                      InstanceMethod<&NftObject::generation>("generation"), InstanceMethod<&NftObject::port>("port"),
                      InstanceMethod<&NftObject::descriptor>("descriptor"), InstanceMethod<&NftObject::close>("close")});
}

NftObject::NftObject(const Napi::CallbackInfo& info) : ObjectWrap(info), socket_(std::make_unique<nft::Socket>()) {
  if (info[0].IsUndefined()) {
    if (const int error = socket_->open(); error != 0) throw errno_error(info.Env(), "socket(AF_NETLINK)", -error);
    return;
  }
  net::UniqueFd fd(static_cast<int>(integer_argument(info, 0, "fd", 0, 2147483647.0)));
  if (const int error = socket_->adopt(std::move(fd)); error != 0) throw errno_error(info.Env(), "adopt the socket", -error);
}

nft::Socket& NftObject::open(Napi::Env env) {
  if (!socket_) throw errno_error(env, "the socket is closed", EBADF);
  return *socket_;
}

Napi::Value NftObject::apply(const Napi::CallbackInfo& info) {
  nft::Socket& socket = open(info.Env());
  std::optional<std::uint32_t> generation;
  if (!info[1].IsUndefined()) generation = static_cast<std::uint32_t>(integer_argument(info, 1, "generation", 0, 4294967295.0));
  const nft::Outcome outcome = socket.apply(plan_value(info[0]), generation);
  if (outcome.error != 0) fail(info.Env(), "apply", outcome);
  return info.Env().Undefined();
}

Napi::Value NftObject::knows_flags(const Napi::CallbackInfo& info) {
  bool known = false;
  const nft::Outcome outcome = open(info.Env()).knows_flags(static_cast<std::uint32_t>(integer_argument(info, 0, "flags", 0, 4294967295.0)), known);
  if (outcome.error != 0) fail(info.Env(), "knowsFlags", outcome);
  return Napi::Boolean::New(info.Env(), known);
}

Napi::Value NftObject::dump(const Napi::CallbackInfo& info) {
  nft::Socket& socket = open(info.Env());
  const std::string kind = string_argument(info, 0, "kind");
  const auto found = std::find(kKinds.begin(), kKinds.end(), kind);
  if (found == kKinds.end()) throw Napi::TypeError::New(info.Env(), "kind must be table, chain, rule, set, element or counter");
  const auto number = static_cast<nft::ObjectKind>(found - kKinds.begin());
  const std::string table = name_argument(info, 1, "table");
  const std::string set = name_argument(info, 2, "set");
  if ((number == nft::ObjectKind::element) != !set.empty() || (!set.empty() && table.empty())) {
    throw Napi::TypeError::New(info.Env(), "elements are those of a table and a set, other kinds have no set");
  }
  std::vector<nft::Object> objects;
  const nft::Outcome outcome = socket.dump(number, table, set, objects);
  if (outcome.error != 0) fail(info.Env(), "dump", outcome);
  auto array = Napi::Array::New(info.Env(), objects.size());
  for (std::uint32_t i = 0; i < objects.size(); ++i) array.Set(i, object_value(info.Env(), objects[i]));
  return array;
}

Napi::Value NftObject::generation(const Napi::CallbackInfo& info) {
  std::uint32_t id = 0;
  const nft::Outcome outcome = open(info.Env()).generation(id);
  if (outcome.error != 0) fail(info.Env(), "generation", outcome);
  return Napi::Number::New(info.Env(), id);
}

Napi::Value NftObject::port(const Napi::CallbackInfo& info) { return Napi::Number::New(info.Env(), open(info.Env()).port()); }

Napi::Value NftObject::descriptor(const Napi::CallbackInfo& info) { return Napi::Number::New(info.Env(), open(info.Env()).fd()); }

Napi::Value NftObject::close(const Napi::CallbackInfo& info) {
  socket_.reset();
  return info.Env().Undefined();
}

}  // namespace holdfast::binding
