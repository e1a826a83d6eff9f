#pragma once

#include <napi.h>

#include <utility>

namespace holdfast::binding {

/// Runs `work()` on a thread of libuv's pool, then `settle(deferred, result)` on JavaScript's; the promise is what the function returns.
template <typename Work, typename Settle>
class PoolCall final : public Napi::AsyncWorker {
 public:
  PoolCall(Napi::Env env, Work work, Settle settle) : AsyncWorker(env), deferred_(env), work_(std::move(work)), settle_(std::move(settle)) {}

  Napi::Promise promise() const { return deferred_.Promise(); }
  void Execute() override { result_ = work_(); }
  void OnOK() override { settle_(deferred_, result_); }
  void OnError(const Napi::Error& error) override { deferred_.Reject(error.Value()); }

 private:
  Napi::Promise::Deferred deferred_;
  Work work_;
  Settle settle_;
  decltype(std::declval<Work>()()) result_{};
};

template <typename Work, typename Settle>
Napi::Promise in_pool(Napi::Env env, Work work, Settle settle) {
  // Deletes itself when it is done.
  auto* call = new PoolCall<Work, Settle>(env, std::move(work), std::move(settle));
  const Napi::Promise promise = call->promise();
  call->Queue();
  return promise;
}

}  // namespace holdfast::binding
