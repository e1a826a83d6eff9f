#pragma once

#include <napi.h>

#include <memory>

#include "nft_socket.h"

namespace holdfast::binding {

/// `new NftSocket(fd)`, `apply(plan, generation)`, `knowsFlags(flags)`, `dump(kind, table, set)`, `generation()`, `port()`, `descriptor()`, `close()`; src/adapters/dataplane/nft-addon.ts has the types.
/// Calls run on the thread of JavaScript: a change of one service takes 20 microseconds, the load of 30,000 a quarter of a second.
class NftObject : public Napi::ObjectWrap<NftObject> {
 public:
  static Napi::Function define(Napi::Env env);
  explicit NftObject(const Napi::CallbackInfo& info);

 private:
  Napi::Value apply(const Napi::CallbackInfo& info);
  Napi::Value knows_flags(const Napi::CallbackInfo& info);
  Napi::Value dump(const Napi::CallbackInfo& info);
  Napi::Value generation(const Napi::CallbackInfo& info);
  Napi::Value port(const Napi::CallbackInfo& info);
  Napi::Value descriptor(const Napi::CallbackInfo& info);
  Napi::Value close(const Napi::CallbackInfo& info);

  nft::Socket& open(Napi::Env env);

  std::unique_ptr<nft::Socket> socket_;
};

}  // namespace holdfast::binding
