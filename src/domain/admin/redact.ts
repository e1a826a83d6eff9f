import type { AdminGrade } from '../certificate/model.js';
import { suffices } from './roles.js';

/** An object as callers read it. */
export interface ShownObject {
  readonly kind: string;
}

/** What of a Secret is its value; its keys may be known. */
const valueFields = ['data', 'stringData'] as const;

/** The object as somebody of this role may see it: a viewer sees of a Secret which keys it has, and none of their values. */
export function shownTo<T extends ShownObject>(grade: AdminGrade, object: T): T {
  if (object.kind !== 'Secret' || suffices(grade, 'operator')) return object;
  return { ...object, ...withoutValues(object), ...('spec' in object ? { spec: withoutValues(object.spec) } : {}) };
}

function withoutValues(holder: unknown): Readonly<Record<string, unknown>> {
  if (typeof holder !== 'object' || holder === null) return {};
  const fields = new Map(Object.entries(holder));
  for (const field of valueFields) if (fields.has(field)) fields.set(field, emptied(fields.get(field)));
  return Object.fromEntries(fields);
}

function emptied(values: unknown): Readonly<Record<string, string>> {
  if (typeof values !== 'object' || values === null) return {};
  return Object.fromEntries(Object.keys(values).map((key) => [key, '']));
}
