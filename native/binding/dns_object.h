#pragma once

#include <napi.h>

#include <atomic>
#include <memory>

#include "dns_responder.h"

namespace holdfast::binding {

/// `new DnsResponder(threads, onQuestion?)`: the JavaScript face of dns::Responder; src/adapters/dns/dns-addon.ts has the types. Used on one JavaScript
/// thread. Ends its threads when the environment ends or when it is collected.
class DnsObject final : public Napi::ObjectWrap<DnsObject> {
 public:
  static Napi::Function define(Napi::Env env);

  explicit DnsObject(const Napi::CallbackInfo& info);
  ~DnsObject() override;

 private:
  Napi::Value listen(const Napi::CallbackInfo& info);
  Napi::Value apply(const Napi::CallbackInfo& info);
  Napi::Value put_cached(const Napi::CallbackInfo& info);
  Napi::Value remove_cached(const Napi::CallbackInfo& info);
  Napi::Value clear_cached(const Napi::CallbackInfo& info);
  Napi::Value answer(const Napi::CallbackInfo& info);
  Napi::Value stats(const Napi::CallbackInfo& info);
  Napi::Value stop(const Napi::CallbackInfo& info);

  dns::Responder& running(Napi::Env env);
  bool emit(dns::Question question);
  static void at_environment_end(void* self) noexcept;
  void shut_down() noexcept;

  /// Undefined when nothing is handed up.
  Napi::ThreadSafeFunction questions_;
  std::unique_ptr<dns::Responder> responder_;
};

}  // namespace holdfast::binding
