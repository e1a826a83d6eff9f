#include "proxy_object.h"

#include "arguments.h"
#include "call_back.h"
#include "one_call.h"
#include "table_codec.h"
#include "values.h"

namespace holdfast::binding {
namespace {

/// What JavaScript has not taken yet; more are dropped and counted.
constexpr std::size_t kEventQueue = 1024;
constexpr double kMostThreads = 64;
/// A day: a longer wait is a mistake.
constexpr double kLongestMs = 86'400'000;
/// A worker that polls for longer takes its core from others for no gain.
constexpr double kLongestPollUs = 1'000;

proxy::Settings settings_argument(const Napi::CallbackInfo& info, std::size_t index) {
  const Napi::Object given = object_argument(info, index, "settings");
  const proxy::Settings defaults;
  const auto integer = [&given](const char* name, double most, double otherwise) { return integer_property(given, name, 0, most, otherwise); };
  proxy::Settings settings;
  settings.threads = static_cast<std::size_t>(integer("threads", kMostThreads, 0));
  settings.max_connections = static_cast<std::uint64_t>(integer("maxConnections", 4294967295.0, 0));
  settings.busy_poll = std::chrono::microseconds(static_cast<std::int64_t>(integer("busyPollUs", kLongestPollUs, 0)));
  settings.ejection_failures = static_cast<std::uint32_t>(integer("ejectionFailures", 1'000'000, defaults.ejection_failures));
  settings.ejection_return = std::chrono::milliseconds(
      static_cast<std::int64_t>(integer("ejectionReturnMs", kLongestMs, static_cast<double>(defaults.ejection_return.count()))));
  return settings;
}

}  // namespace

Napi::Function ProxyObject::define(Napi::Env env) {
  return DefineClass(env, "Proxy",
                     {InstanceMethod<&ProxyObject::apply>("apply"), InstanceMethod<&ProxyObject::stats>("stats"),
                      InstanceMethod<&ProxyObject::info>("info"), InstanceMethod<&ProxyObject::sockets>("sockets"),
                      InstanceMethod<&ProxyObject::inherit>("inherit"), InstanceMethod<&ProxyObject::drop_inherited>("dropInherited"),
                      InstanceMethod<&ProxyObject::stop>("stop")});
}

ProxyObject::ProxyObject(const Napi::CallbackInfo& info) : ObjectWrap(info) {
  const Napi::Env env = info.Env();
  const proxy::Settings settings = settings_argument(info, 0);
  const Napi::Function on_event = function_argument(info, 1, "onEvent");
  events_ = Napi::ThreadSafeFunction::New(env, on_event, "holdfast events", kEventQueue, 1);
  events_.Unref(env);
  try {
    proxy_ = std::make_unique<proxy::Proxy>(settings, [this](proxy::Event event) { emit(std::move(event)); });
  } catch (const std::exception& error) {
    events_.Release();
    throw Napi::Error::New(env, error.what());
  }
  // After the queue's own hook, so it runs before that: the threads are gone when the queue goes.
  napi_add_env_cleanup_hook(env, at_environment_end, this);
}

ProxyObject::~ProxyObject() {
  if (!proxy_) return;
  napi_remove_env_cleanup_hook(Env(), at_environment_end, this);
  shut_down();
}

void ProxyObject::at_environment_end(void* self) noexcept { static_cast<ProxyObject*>(self)->shut_down(); }

void ProxyObject::shut_down() noexcept {
  if (!proxy_) return;
  proxy_.reset();
  events_.Release();
}

void ProxyObject::emit(proxy::Event event) {
  auto* data = new proxy::Event(std::move(event));
  const auto call = [](Napi::Env env, Napi::Function on_event, proxy::Event* raw) {
    const std::unique_ptr<proxy::Event> owned(raw);
    if (on_event) call_back(env, on_event, [&](Napi::Env now) { return event_value(now, *owned); });
  };
  if (events_.NonBlockingCall(data, call) == napi_ok) return;
  delete data;
  dropped_.fetch_add(1, std::memory_order_relaxed);
}

Napi::Value ProxyObject::apply(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  auto decoded = proxy::decode_table_delta(bytes_argument(info, 0, "delta"));
  if (const auto* error = std::get_if<proxy::DecodeError>(&decoded)) throw Napi::TypeError::New(env, "delta: " + error->problem);
  const auto deferred = std::make_shared<Napi::Promise::Deferred>(env);
  if (!proxy_ || proxy_->stopping()) {
    deferred->Reject(Napi::Error::New(env, "the proxy is stopped").Value());
    return deferred->Promise();
  }
  const auto results = std::make_shared<std::vector<proxy::ListenResult>>();
  *results = proxy_->apply(std::get<proxy::TableDelta>(decoded), [deferred, results, call = OneCall(env, "holdfast apply")] {
    call([deferred, results](Napi::Env env) { deferred->Resolve(results_value(env, *results)); });
  });
  return deferred->Promise();
}

Napi::Value ProxyObject::stats(const Napi::CallbackInfo& info) {
  if (!proxy_) return stats_value(info.Env(), {});
  if (info.Length() == 0) return stats_value(info.Env(), proxy_->table().changed_stats());
  const auto id = static_cast<proxy::ListenerId>(integer_argument(info, 0, "id", 0, 4294967295.0));
  const auto one = proxy_->table().stats(id);
  return stats_value(info.Env(), one ? std::vector{*one} : std::vector<proxy::ListenerStats>{});
}

Napi::Value ProxyObject::info(const Napi::CallbackInfo& info) {
  const proxy::ProxyInfo facts = proxy_ ? proxy_->info() : proxy::ProxyInfo{};
  const Napi::Object value = Napi::Object::New(info.Env());
  value.Set("threads", static_cast<double>(facts.threads));
  value.Set("listenerBudget", static_cast<double>(facts.listener_budget));
  value.Set("listeners", static_cast<double>(facts.listeners));
  value.Set("connections", static_cast<double>(facts.connections));
  value.Set("connectionLimit", static_cast<double>(facts.connection_limit));
  value.Set("droppedEvents", static_cast<double>(dropped_.load(std::memory_order_relaxed)));
  return value;
}

Napi::Value ProxyObject::sockets(const Napi::CallbackInfo& info) {
  const Napi::Array list = Napi::Array::New(info.Env());
  if (!proxy_) return list;
  for (const proxy::ListeningSocket& socket : proxy_->table().sockets()) {
    const Napi::Object item = Napi::Object::New(info.Env());
    item.Set("protocol", socket.protocol == proxy::Protocol::udp ? "udp" : "tcp");
    item.Set("address", socket.bound.host());
    item.Set("port", static_cast<double>(socket.bound.port));
    item.Set("fd", static_cast<double>(socket.fd));
    list.Set(list.Length(), item);
  }
  return list;
}

Napi::Value ProxyObject::inherit(const Napi::CallbackInfo& info) {
  const std::string protocol = string_argument(info, 0, "protocol");
  if (protocol != "tcp" && protocol != "udp") throw Napi::TypeError::New(info.Env(), "protocol must be tcp or udp");
  net::UniqueFd fd(static_cast<int>(integer_argument(info, 1, "fd", 0, 2147483647.0)));
  if (!proxy_) return Napi::Boolean::New(info.Env(), false);
  return Napi::Boolean::New(info.Env(), proxy_->table().inherit(std::move(fd), protocol == "udp" ? proxy::Protocol::udp : proxy::Protocol::tcp));
}

Napi::Value ProxyObject::drop_inherited(const Napi::CallbackInfo& info) {
  if (proxy_) proxy_->table().drop_inherited();
  return info.Env().Undefined();
}

Napi::Value ProxyObject::stop(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const std::chrono::milliseconds grace(static_cast<std::int64_t>(integer_argument(info, 0, "graceMs", 0, kLongestMs)));
  const bool handed_over = info[1].ToBoolean();
  const auto deferred = Napi::Promise::Deferred::New(env);
  if (stopped_ || !proxy_) {
    deferred.Resolve(env.Undefined());
    return deferred.Promise();
  }
  waiting_for_stop_.push_back(deferred);
  if (proxy_->stopping()) {
    proxy_->begin_stop(grace, nullptr, handed_over);
    return deferred.Promise();
  }
  Ref();  // not collected before the promise is settled
  proxy_->begin_stop(grace, [this, call = OneCall(env, "holdfast stop")] { call([this](Napi::Env later) { all_ended(later); }); }, handed_over);
  return deferred.Promise();
}

/// The threads have nothing left but to return, so the join takes no time.
void ProxyObject::all_ended(Napi::Env env) {
  if (proxy_) proxy_->join();
  stopped_ = true;
  for (const auto& deferred : waiting_for_stop_) deferred.Resolve(env.Undefined());
  waiting_for_stop_.clear();
  Unref();
}

}  // namespace holdfast::binding
