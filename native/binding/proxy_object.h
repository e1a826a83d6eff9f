#pragma once

#include <napi.h>

#include <atomic>
#include <memory>
#include <vector>

#include "proxy.h"

namespace holdfast::binding {

/// `new Proxy(settings, onEvent)`: the JavaScript face of proxy::Proxy. Used on one JavaScript thread, which it never blocks; no JavaScript value
/// leaves it. Ends its threads when the environment ends or when it is collected.
class ProxyObject final : public Napi::ObjectWrap<ProxyObject> {
 public:
  static Napi::Function define(Napi::Env env);

  explicit ProxyObject(const Napi::CallbackInfo& info);
  ~ProxyObject() override;

 private:
  Napi::Value apply(const Napi::CallbackInfo& info);
  Napi::Value stats(const Napi::CallbackInfo& info);
  Napi::Value info(const Napi::CallbackInfo& info);
  Napi::Value sockets(const Napi::CallbackInfo& info);
  Napi::Value inherit(const Napi::CallbackInfo& info);
  Napi::Value drop_inherited(const Napi::CallbackInfo& info);
  Napi::Value stop(const Napi::CallbackInfo& info);

  void emit(proxy::Event event);
  void all_ended(Napi::Env env);
  static void at_environment_end(void* self) noexcept;
  /// Cuts all connections and waits for the threads.
  void shut_down() noexcept;

  Napi::ThreadSafeFunction events_;
  std::atomic<std::uint64_t> dropped_{0};
  std::unique_ptr<proxy::Proxy> proxy_;
  std::vector<Napi::Promise::Deferred> waiting_for_stop_;
  bool stopped_ = false;
};

}  // namespace holdfast::binding
