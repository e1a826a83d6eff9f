import { AgentError } from '../kernel/errors.js';
import { type Identity, isLabelKey, isLabelValue, type Labels, type NodeName, nodeName } from './model.js';

/** What a new identity is made from. */
export interface MintFacts {
  /** As the operator gave it. */
  readonly explicitName?: string | undefined;
  readonly hostname: string;
  readonly labels: Labels;
  /** Eight, from a good source. */
  readonly randomBytes: Uint8Array;
}

/**
 * The explicit name; else the host name, or its first label; else `node-` and 16 hex digits.
 * @throws AgentError `identity.invalid_name`: an explicit name is never replaced by another
 */
export function mintIdentity({ explicitName, hostname, labels, randomBytes }: MintFacts): Identity {
  return { nodeId: chooseName(explicitName, hostname, randomBytes), hostname, labels };
}

function chooseName(explicitName: string | undefined, hostname: string, randomBytes: Uint8Array): NodeName {
  if (explicitName !== undefined) {
    const name = nodeName(explicitName);
    if (name !== undefined) return name;
    throw new AgentError('identity.invalid_name', { problem: `${JSON.stringify(explicitName)} is no node name` });
  }
  const [firstLabel = ''] = hostname.split('.');
  return nodeName(firstLabel) ?? randomName(randomBytes);
}

function randomName(randomBytes: Uint8Array): NodeName {
  if (randomBytes.length < 8) throw new RangeError(`8 random bytes are needed, got ${randomBytes.length}`);
  const digits = Array.from(randomBytes.subarray(0, 8), (byte) => byte.toString(16).padStart(2, '0'));
  return `node-${digits.join('')}` as NodeName;
}

export function formatIdentity({ nodeId, hostname, labels }: Identity): string {
  return `${JSON.stringify({ node_id: nodeId, hostname, labels }, null, 2)}\n`;
}

/**
 * The identity in a file's text. Keys that it does not know are left to the newer version that wrote them.
 * @throws AgentError `identity.malformed`
 */
export function parseIdentity(text: string, file: string): Identity {
  const refuse = (problem: string, options?: { cause: unknown }): never => {
    throw new AgentError('identity.malformed', { problem: `${file} ${problem}` }, options);
  };
  if (text.trim() === '') return refuse('is empty');
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    return refuse('is not JSON', { cause });
  }
  if (!isRecord(value)) return refuse('is not a JSON object');
  const { node_id: id, hostname, labels } = value;
  if (typeof id !== 'string' || id === '') return refuse('has no node_id');
  const nodeId = nodeName(id);
  if (nodeId === undefined) return refuse(`has a node_id that is no DNS-1123 label: ${JSON.stringify(id)}`);
  if (typeof hostname !== 'string') return refuse('has no hostname');
  if (!isLabels(labels)) return refuse('has no labels, or some that are no labels');
  return { nodeId, hostname, labels };
}

/** What the configuration asks for and the identity, being written once, does not become; sentences for warnings. */
export function identityDrift(identity: Identity, wanted: { readonly nodeName?: NodeName; readonly labels: Labels }): string[] {
  const drift: string[] = [];
  if (wanted.nodeName !== undefined && wanted.nodeName !== identity.nodeId) {
    drift.push(`nodeName is ${wanted.nodeName}, but this node was made as ${identity.nodeId} and stays it`);
  }
  const differing = Object.keys(wanted.labels).filter((key) => wanted.labels[key] !== identity.labels[key]);
  if (differing.length > 0) drift.push(`labels that this node was not made with are not used: ${differing.sort().join(', ')}`);
  return drift;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isLabels(value: unknown): value is Labels {
  return (
    isRecord(value) &&
    Object.entries(value).every(([key, each]) => isLabelKey(key) && typeof each === 'string' && isLabelValue(each))
  );
}
