#pragma once

#include <napi.h>

#include <utility>

namespace holdfast::binding {

/// Calls a function on the JavaScript thread once, from any thread; keeps the process alive until then.
class OneCall {
 public:
  OneCall(Napi::Env env, const char* name) : function_(Napi::ThreadSafeFunction::New(env, Napi::Function(), name, 0, 1)) {}

  template <typename Call>
  void operator()(Call call) const {
    const auto status = function_.NonBlockingCall([call = std::move(call)](Napi::Env env, Napi::Function) { call(env); });
    // When the environment is ending, the refused call was the release.
    if (status != napi_closing) function_.Release();
  }

 private:
  Napi::ThreadSafeFunction function_;
};

}  // namespace holdfast::binding
