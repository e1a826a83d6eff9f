import type { X509Certificate } from 'node:crypto';
import type { TLSSocket } from 'node:tls';
import type { PresentedCertificate } from '../../domain/certificate/judge.js';
import { formatAddressPort, ipAddress } from '../../domain/kernel/network.js';
import { readPresented } from './certificate-reader.js';

/** A node has a connection for its link and one for its log, which come one after the other. */
const RECENT = 1_024;

/**
 * What each connection has shown, read once, as judged by the roots; undefined when nothing can be read.
 * @param roots PEM, each; another array when they have changed
 */
export function certificatesOf(roots: () => readonly string[]): (socket: TLSSocket) => PresentedCertificate | undefined {
  let judgedBy = roots();
  let read = new WeakMap<TLSSocket, PresentedCertificate>();
  let recent = new RecentCertificates(judgedBy, RECENT);
  return (socket) => {
    if (roots() !== judgedBy) {
      judgedBy = roots();
      read = new WeakMap();
      recent = new RecentCertificates(judgedBy, RECENT);
    }
    const presented = read.get(socket) ?? presentedOn(socket, recent);
    if (presented !== undefined) read.set(socket, presented);
    return presented;
  };
}

function presentedOn(socket: TLSSocket, recent: RecentCertificates): PresentedCertificate | undefined {
  const certificate = socket.getPeerX509Certificate();
  try {
    return certificate === undefined ? undefined : recent.read(certificate);
  } catch {
    // OpenSSL has read it; what our reader does not take names nobody.
    return undefined;
  }
}

/** Reads a certificate once, for as long as it is among the newest; what it says depends on its bytes alone. */
export class RecentCertificates {
  readonly #roots: readonly string[];
  readonly #most: number;
  /** By the digest of all its bytes, oldest first. */
  readonly #known = new Map<string, PresentedCertificate>();

  /** @param roots PEM, each */
  constructor(roots: readonly string[], most: number) {
    this.#roots = roots;
    this.#most = most;
  }

  get size(): number {
    return this.#known.size;
  }

  /** @throws Error as `readPresented` */
  read(certificate: X509Certificate): PresentedCertificate {
    const key = certificate.fingerprint256;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const presented = readPresented(certificate.raw, ...this.#roots);
    // Strangers put nobody out.
    if (presented.trusted) this.#known.set(key, presented);
    const [oldest] = this.#known.keys();
    if (this.#known.size > this.#most && oldest !== undefined) this.#known.delete(oldest);
    return presented;
  }
}

/** Empty when the connection is gone. */
export function addressOf({ remoteAddress = '', remotePort = 0 }: TLSSocket): string {
  const address = ipAddress(remoteAddress);
  return address === undefined ? '' : formatAddressPort(address, remotePort);
}
