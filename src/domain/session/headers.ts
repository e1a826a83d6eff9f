/** Of HTTP's handshake and its connection: they are the dialler's own, whatever a client's said. */
const OWN: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'host',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'sec-websocket-accept',
  'sec-websocket-extensions',
  'sec-websocket-key',
  'sec-websocket-version',
]);
const SUBPROTOCOLS = 'sec-websocket-protocol';
/** A token of RFC 9110. */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,256}$/;
/** Visible characters, spaces and tabs: nothing that ends a line. */
const VALUE = /^[\t\x20-\x7e]*$/;
const MAX_HEADERS = 64;
const MAX_HEADER_BYTES = 16 * 1024;

export type SplitHeaders =
  | { readonly ok: true; readonly headers: Readonly<Record<string, string>>; readonly subprotocols: readonly string[] }
  | { readonly ok: false; readonly problem: string };

/** What of the given headers goes to the service as it is, and which subprotocols they ask for, each once. */
export function splitHeaders(given: Readonly<Record<string, string>>): SplitHeaders {
  const entries = Object.entries(given);
  const bytes = entries.reduce((sum, [name, value]) => sum + name.length + value.length, 0);
  if (entries.length > MAX_HEADERS || bytes > MAX_HEADER_BYTES)
    return { ok: false, problem: `headers: at most ${MAX_HEADERS} and ${MAX_HEADER_BYTES} bytes` };
  const bad = entries.find(([name, value]) => !TOKEN.test(name) || !VALUE.test(value));
  if (bad !== undefined) return { ok: false, problem: `headers: ${JSON.stringify(bad[0].slice(0, 64))} is no header` };
  const named = entries.map(([name, value]) => [name.toLowerCase(), value] as const);
  const asked = named.filter(([name]) => name === SUBPROTOCOLS).flatMap(([, value]) => value.split(','));
  const subprotocols = [...new Set(asked.map((text) => text.trim()).filter((text) => text !== ''))];
  if (!subprotocols.every((text) => TOKEN.test(text))) return { ok: false, problem: `headers: ${SUBPROTOCOLS}: no subprotocol` };
  const headers = named.filter(([name]) => name !== SUBPROTOCOLS && !OWN.has(name));
  return { ok: true, headers: Object.fromEntries(headers), subprotocols };
}
