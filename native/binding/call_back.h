#pragma once

#include <napi.h>

namespace holdfast::binding {

/// `function(make(env))` from a thread-safe function's queue. Node still empties that queue while an environment ends, when no JavaScript can run any
/// more: then nothing is called. What the function throws is an uncaught exception of JavaScript, as of any callback.
template <typename Make>
void call_back(Napi::Env env, const Napi::Function& function, Make make) {
  napi_value argument;
  try {
    argument = make(env);
  } catch (const Napi::Error&) {
    return;
  }
  napi_value ignored;
  napi_call_function(env, env.Undefined(), function, 1, &argument, &ignored);
}

}  // namespace holdfast::binding
