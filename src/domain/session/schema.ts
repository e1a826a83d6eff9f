import { z } from 'zod';
import { port } from '../kernel/schema.js';
import { splitHeaders } from './headers.js';
import type { SessionTarget, TerminalSize } from './model.js';

/** Names of the one kind of target that there is; left out is the same. */
const TARGETS: readonly string[] = ['', 'SERVICE_WEBSOCKET', 'STREAM_TARGET_SERVICE_WEBSOCKET'];
/** RFC 1123: what Kubernetes takes for the name of a service and of a namespace. No dot, so that no other name can be made of it. */
const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
/** What may stand behind the port of a URL, up to a fragment; it begins with a slash, so that it never becomes a part of the host. */
const PATH = /^(?:\/[\x21\x22\x24-\x7e]*)?$/;
const MAX_PATH = 2_048;
/** Of what terminals say; a greater one is somebody's mistake. */
const GREATEST_SIDE = 65_535;

const label = z.string('text').regex(LABEL, 'a DNS label: 1 to 63 characters of a-z, 0-9 and -, not at either end');
const side = z.int('a whole number').min(0, 'a whole number').max(GREATEST_SIDE, `at most ${GREATEST_SIDE}`);

const openSchema = z.object({
  target: z
    .string('text')
    .refine((text) => TARGETS.includes(text), 'SERVICE_WEBSOCKET: no other target is known')
    .nullish(),
  namespace: label,
  name: label,
  port,
  path: z
    .string('text')
    .max(MAX_PATH, `at most ${MAX_PATH} characters`)
    .regex(PATH, 'a path that begins with / and has no space and no #')
    .nullish(),
  headers: z.record(z.string(), z.string('text'), 'a map of texts').nullish(),
  cols: side.nullish(),
  rows: side.nullish(),
});

const sizeSchema = z.object({ cols: side.min(1, '1 or more'), rows: side.min(1, '1 or more') });

export type ReadTarget = { readonly ok: true; readonly target: SessionTarget } | { readonly ok: false; readonly problem: string };

/** Of the JSON of an `OPEN_STREAM`; unknown keys are a newer server's and are ignored. */
export function readTarget(json: unknown): ReadTarget {
  const parsed = openSchema.safeParse(json);
  if (!parsed.success) return { ok: false, problem: firstProblem(parsed.error) };
  const { namespace, name, port: number, path, headers: given, cols, rows } = parsed.data;
  const split = splitHeaders(given ?? {});
  if (!split.ok) return split;
  const { headers, subprotocols } = split;
  const size = cols && rows ? { cols, rows } : undefined;
  return { ok: true, target: { namespace, name, port: number, path: path ?? '', headers, subprotocols, size } };
}

/** Of the JSON of a `STREAM_RESIZE`; undefined when it says no size. */
export function readSize(json: unknown): TerminalSize | undefined {
  const parsed = sizeSchema.safeParse(json);
  return parsed.success ? parsed.data : undefined;
}

function firstProblem({ issues: [first] }: z.ZodError): string {
  if (first === undefined) return 'an object';
  const place = first.path.join('.');
  return place === '' ? 'expected an object' : `${place}: expected ${first.message}`;
}
