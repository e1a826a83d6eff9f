import { createHash } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { AgentError } from '../../domain/kernel/errors.js';
import { linkMessage } from '../../domain/link/envelope.js';
import { type LinkMessage, MAX_SENT_BYTES } from '../../domain/link/model.js';
import type { UploadRequest } from '../generated/holdfast/link/v1/link.js';

/** The reply that comes in pieces, whole. @throws AgentError `link.too_large`, `link.refused` for what is no reply or has another digest */
export async function readUpload(pieces: AsyncIterable<UploadRequest>): Promise<LinkMessage> {
  const hash = createHash('sha256');
  const parts: Buffer[] = [];
  let head: { readonly type: string; readonly tag: string } | undefined;
  let digest: Buffer = Buffer.alloc(0);
  let bytes = 0;
  for await (const { type, tag, data, sha256 } of pieces) {
    head ??= { type, tag };
    bytes += data.length;
    if (bytes > MAX_SENT_BYTES) throw new AgentError('link.too_large', { problem: `more than ${MAX_SENT_BYTES} bytes` });
    hash.update(data);
    parts.push(data);
    digest = sha256;
  }
  if (!hash.digest().equals(digest)) throw new AgentError('link.refused', { problem: 'the digest is that of something else' });
  const message = head === undefined ? undefined : linkMessage({ ...head, jsonB64: Buffer.concat(parts).toString('utf8') });
  if (message === undefined) throw new AgentError('link.refused', { problem: 'the first message names no type or tag' });
  return message;
}

/** How many a node uploads at once: each takes 12 MiB at most. */
export class UploadSlots {
  readonly #most: number;
  readonly #taken = new Map<string, number>();

  constructor(most: number) {
    this.#most = most;
  }

  /** Undefined when none is free. */
  take(name: string): (() => void) | undefined {
    const taken = this.#taken.get(name) ?? 0;
    if (taken >= this.#most) return undefined;
    this.#taken.set(name, taken + 1);
    return () => this.#give(name);
  }

  #give(name: string): void {
    const left = (this.#taken.get(name) ?? 1) - 1;
    if (left === 0) this.#taken.delete(name);
    else this.#taken.set(name, left);
  }
}

export const tooManyUploads = { code: status.RESOURCE_EXHAUSTED, details: 'too many uploads of this node at once' };
