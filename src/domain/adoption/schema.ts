import { z } from 'zod';
import { type HostPort, hostPort, ipAddress, type PortNumber } from '../kernel/network.js';
import { type AbsolutePath, absolutePath } from '../kernel/paths.js';
import { aid, nid } from '../link/model.js';
import { type AdoptionRecord, adoptionStates, type LegacyAgent } from './model.js';

/** What an older agent connects to when nothing is said. */
const LEGACY_SERVER = 'nodeward.runos.com';
/** Of the mutual channel. */
const NODES_PORT = 9192 as PortNumber;
/** The older agent's word for what is not set. */
const UNSET = 'xxxxx';

/** Numbers too: an account may be one. What is empty is not set. */
const text = z
  .union([z.string(), z.number()])
  .nullish()
  .transform((value) => {
    const given = value === undefined || value === null ? '' : String(value).trim();
    return given === '' || given === UNSET ? undefined : given;
  });

/** @param read throws RangeError, or returns undefined, for what it does not take */
function read<T>(expected: string, reader: (given: string) => T | undefined) {
  return text.transform((given, context): T | undefined => {
    if (given === undefined) return undefined;
    try {
      const value = reader(given);
      if (value !== undefined) return value;
    } catch {
      // As below.
    }
    context.addIssue({ code: 'custom', message: `expected ${expected}, found ${JSON.stringify(given)}` });
    return z.NEVER;
  });
}

function needed<T>(reader: z.ZodType<T | undefined>) {
  return reader.transform((value, context): T => {
    if (value !== undefined) return value;
    context.addIssue({ code: 'custom', message: 'is not set' });
    return z.NEVER;
  });
}

const path = read('an absolute path', absolutePath);
const baseUrl = read('http:// or https:// and a host', (given) => {
  const url = given.replace(/\/+$/, '');
  return /^https?:\/\/[^\s/?#@]+(\/[^\s?#]*)?$/.test(url) ? url : undefined;
});
const sha256 = read('64 hex digits', (given) => (/^[0-9a-f]{64}$/i.test(given) ? given.toLowerCase() : undefined));

/** What it does not know is of no use to this agent. A group may be missing or empty. */
const group = <T extends z.ZodRawShape>(shape: T) => z.preprocess((value) => value ?? {}, z.object(shape));

const legacy = group({
  client: group({
    aid: read('an account', aid),
    server: group({
      nodeward: read('a host', (given) => hostPort(given, NODES_PORT)),
      installer: baseUrl,
      conductor: baseUrl,
    }),
  }),
  node: group({ nid: read('a node id', nid), ip: read('an IP address', ipAddress) }),
  mtls: group({ crt: needed(path), key: needed(path), ca: needed(path), 'public-ca': path, 'public-ca-sha256': sha256 }),
});

export type LegacyReading =
  | { readonly valid: true; readonly agent: LegacyAgent }
  /** `mtls.crt: is not set` */
  | { readonly valid: false; readonly problems: readonly string[] };

/** Of the older agent's configuration, parsed. */
export function decodeLegacy(value: unknown): LegacyReading {
  const parsed = legacy.safeParse(value);
  if (!parsed.success) {
    return { valid: false, problems: parsed.error.issues.map(({ path: at, message }) => `${at.join('.')}: ${message}`) };
  }
  const { client, node, mtls } = parsed.data;
  const server = client.server.nodeward ?? usualServer();
  return {
    valid: true,
    agent: {
      aid: client.aid,
      nid: node.nid,
      server,
      installer: client.server.installer,
      conductor: client.server.conductor,
      nodeIp: node.ip,
      files: { certificate: mtls.crt, privateKey: mtls.key, ca: mtls.ca, publicCa: mtls['public-ca'] },
      publicCaSha256: mtls['public-ca-sha256'],
    },
  };
}

function usualServer(): HostPort {
  return { host: LEGACY_SERVER, port: NODES_PORT };
}

const aFile = z.object({
  path: z.string().transform((given, context): AbsolutePath => {
    const known = absolutePath(given);
    if (known !== undefined) return known;
    context.addIssue({ code: 'custom', message: 'no absolute path' });
    return z.NEVER;
  }),
  sha256: z.string(),
});

const record = z.object({
  state: z.enum(adoptionStates),
  at: z.number(),
  nid: needed(read('a node id', nid)),
  aid: needed(read('an account', aid)),
  server: needed(read('a host', (given) => hostPort(given, NODES_PORT))),
  serial: z.string(),
  source: z.object({ config: aFile, certificate: aFile, privateKey: aFile, ca: aFile, publicCa: aFile.optional() }),
  made: z.object({ config: aFile, enrolment: aFile, registrationRoot: aFile.optional() }),
});

/** Undefined when the text is no record. */
export function decodeAdoption(given: string): AdoptionRecord | undefined {
  try {
    const { source, made, ...rest } = record.parse(JSON.parse(given));
    return {
      ...rest,
      source: { ...source, publicCa: source.publicCa },
      made: { ...made, registrationRoot: made.registrationRoot },
    };
  } catch {
    return undefined;
  }
}
