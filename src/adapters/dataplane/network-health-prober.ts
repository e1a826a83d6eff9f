import type { CallOptions } from '../../ports/call-options.js';
import type { HealthProber, ProbeResult, ProbeTarget } from '../../ports/dataplane/health-prober.js';
import { errnoOf } from '../files/errno.js';
import { probeGrpc } from './grpc-health-probe.js';
import { probeHttp } from './http-health-probe.js';
import { probeTcp } from './tcp-health-probe.js';

/** Checks over sockets of this machine. */
export class NetworkHealthProber implements HealthProber {
  async probe(target: ProbeTarget, { signal }: CallOptions): Promise<ProbeResult> {
    signal.throwIfAborted();
    const startedAt = performance.now();
    let reason: string;
    try {
      reason = await reasonOf(target, signal);
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      reason = failure(error);
    }
    return { ok: reason === '', reason, latencyMs: performance.now() - startedAt };
  }
}

/** What speaks against the endpoint; empty when nothing does. */
function reasonOf({ address, port, check }: ProbeTarget, signal: AbortSignal): Promise<string> {
  if (check.http !== undefined) return probeHttp(address, port, check.http, signal);
  if (check.grpc !== undefined) return probeGrpc(address, port, check.grpc.service, signal);
  return probeTcp(address, port, signal);
}

const failures: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection reset',
  EPIPE: 'connection reset',
  EHOSTUNREACH: 'host unreachable',
  ENETUNREACH: 'network unreachable',
  EADDRNOTAVAIL: 'no port of this machine is free to connect from',
  EMFILE: 'this machine has no descriptor left to check with',
  ENFILE: 'this machine has no descriptor left to check with',
  ETIMEDOUT: 'no answer to the connection',
};

/** Codes only: what an error says may hold what the endpoint has sent. */
function failure(error: unknown): string {
  const code = errnoOf(error) ?? 'an unknown error';
  if (code.startsWith('HPE_')) return `no HTTP (${code})`;
  return failures[code] ?? code;
}
