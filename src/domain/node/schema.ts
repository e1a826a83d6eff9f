import { z } from 'zod';
import { formatNodeInfo, type NodeInfo } from './model.js';

const text = z.string().min(1).max(256);
const bytes = z.int().min(0);
const names = z.record(z.string().min(1).max(64), text).refine((record) => Object.keys(record).length <= 256);

const nodeInfo = z.strictObject({
  hostname: text,
  os: text.optional(),
  kernel: text.optional(),
  architecture: text,
  addresses: z.array(text).max(256),
  cpu: z.strictObject({ model: text.optional(), count: z.int().min(0).max(65_536) }),
  memoryBytes: bytes.optional(),
  disks: z
    .array(z.strictObject({ mount: z.string().min(1).max(4_096), device: z.string().max(4_096), filesystem: text, bytes }))
    .max(64)
    .optional(),
  gpus: z
    .array(z.strictObject({ uuid: text, model: text, memoryBytes: bytes }))
    .max(64)
    .optional(),
  versions: names,
  version: text,
  labels: z.record(z.string().max(317), z.string().max(63)),
  subsystems: names,
});

/** Why a text is no record of a node as its agent writes it; undefined when it is one. */
export function refuseNodeInfo(value: string): string | undefined {
  let json: unknown;
  try {
    json = JSON.parse(value);
  } catch {
    return 'it is no JSON';
  }
  const parsed = nodeInfo.safeParse(json);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    return `${issue?.path.join('.') || 'record'}: ${issue?.message ?? 'invalid'}`;
  }
  const info: NodeInfo = parsed.data;
  return formatNodeInfo(info) === value ? undefined : 'it is not in canonical form';
}
