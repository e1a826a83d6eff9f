import type { DnsmasqMemory, Served, UnfinishedChange } from '../../domain/dnsmasq/model.js';

const NOTHING: DnsmasqMemory = { served: undefined, unfinished: undefined };

export function encodeMemory({ served, unfinished }: DnsmasqMemory): string {
  const record = {
    ...(served === undefined ? {} : { served: { ...served, startedAt: served.startedAt.toString() } }),
    ...(unfinished === undefined ? {} : { unfinished: { ...unfinished, before: base64(unfinished.before) } }),
  };
  return `${JSON.stringify(record)}\n`;
}

/** Of anything else, that nothing is known. */
export function parseMemory(text: string): DnsmasqMemory {
  try {
    const value: unknown = JSON.parse(text);
    if (!isObject(value)) return NOTHING;
    return { served: servedOf(value.served), unfinished: unfinishedOf(value.unfinished) };
  } catch {
    return NOTHING;
  }
}

function servedOf(value: unknown): Served | undefined {
  if (!isObject(value)) return undefined;
  const { digest, mark, boot, startedAt } = value;
  if (!isText(digest) || !isText(mark) || !isText(boot) || !isText(startedAt) || !/^\d{1,20}$/.test(startedAt)) return undefined;
  return { digest, mark, boot, startedAt: BigInt(startedAt) };
}

function unfinishedOf(value: unknown): UnfinishedChange | undefined {
  if (!isObject(value)) return undefined;
  const { digest, before } = value;
  if (!isText(digest)) return undefined;
  return { digest, before: isText(before) ? new Uint8Array(Buffer.from(before, 'base64')) : undefined };
}

function base64(bytes: Uint8Array | undefined): string | undefined {
  return bytes === undefined ? undefined : Buffer.from(bytes).toString('base64');
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}
