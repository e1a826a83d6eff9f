import { z } from 'zod';
import { type BackupManifest, backupFiles, MANIFEST_FORMAT } from './model.js';

const file = z.object({
  name: z.enum(backupFiles),
  bytes: z.int().min(0),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
});

/** Keys that it does not know are left to the newer version that wrote them. */
const manifest = z
  .object({
    format: z.int().min(1).max(MANIFEST_FORMAT),
    program: z.string(),
    madeAt: z.number(),
    logId: z.string().min(1),
    revision: z.string().regex(/^(0|[1-9]\d{0,18})$/),
    files: z.array(file),
  })
  .refine(({ files }) => new Set(files.map(({ name }) => name)).size === files.length)
  .refine(({ files }) => ['log.db', 'control.db'].every((wanted) => files.some(({ name }) => name === wanted)));

export function encodeManifest({ revision, ...rest }: BackupManifest): string {
  return `${JSON.stringify({ format: MANIFEST_FORMAT, ...rest, revision: String(revision) }, undefined, 2)}\n`;
}

/** Undefined when the text is none, or that of a newer format. */
export function decodeManifest(text: string): BackupManifest | undefined {
  const found = manifest.safeParse(jsonOf(text));
  if (!found.success) return undefined;
  const { format: _, revision, ...rest } = found.data;
  return { ...rest, revision: BigInt(revision) };
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
