import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { AgentError } from '../../domain/kernel/errors.js';
import type { BindFailure } from '../../ports/dataplane/data-plane.js';

export type NativeEvent =
  | { readonly type: 'drained'; readonly id: number; readonly address: string; readonly port: number; readonly closed: number }
  | { readonly type: 'accept_paused'; readonly detail: string };

export type NativeResult =
  | { readonly id: number; readonly port: number }
  | { readonly id: number; readonly reason: BindFailure; readonly detail: string };

export interface NativeInfo {
  readonly threads: number;
  readonly listenerBudget: number;
  readonly listeners: number;
  /** Events that found the queue of 1,024 full. */
  readonly droppedEvents: number;
}

/** native/binding/proxy_object.h. Wrong arguments throw a TypeError. */
export interface NativeProxy {
  apply(delta: Uint8Array): Promise<readonly NativeResult[]>;
  /** native/binding/values.h has the rows. */
  stats(id?: number): Float64Array;
  info(): NativeInfo;
  stop(graceMs: number): Promise<void>;
}

export interface Addon {
  /** `threads` 0: one per core, at least 2 and at most 8. */
  readonly Proxy: new (
    threads: number,
    onEvent: (event: NativeEvent) => void,
  ) => NativeProxy;
  /** Locks `path` until the process ends; throws an Error with code `EWOULDBLOCK` when another holds it. Returns the descriptor. */
  lockFile(path: string): number;
  /** The user id at the other end of a unix socket. */
  peerUid(fd: number): number;
}

/** From `dist/adapters/dataplane` and from `src/adapters/dataplane` alike. */
const packageRoot = resolve(import.meta.dirname, '../../..');

/** `override` is what HOLDFAST_ADDON says: a sanitized build, for example. */
export function addonPath(override: string | undefined): string {
  return override === undefined || override === '' ? join(packageRoot, 'build/Release/holdfast.node') : resolve(override);
}

/** @throws AgentError `dataplane.addon_missing` when it is not built, or not for this machine. */
export function loadAddon(path: string = addonPath(process.env.HOLDFAST_ADDON)): Addon {
  if (!existsSync(path)) throw new AgentError('dataplane.addon_missing', { path, problem: `there is no ${path}` });
  try {
    return createRequire(import.meta.url)(path) as Addon;
  } catch (error) {
    throw new AgentError('dataplane.addon_missing', { path, problem: `${path} does not load` }, { cause: error });
  }
}
