import { z } from 'zod';
import type { RemovalOrder } from './model.js';

const order = z.object({
  kind: z.enum(['uninstall', 'reinstall']),
  task: z.string().optional(),
  stage: z.enum(['removing', 'installing']),
  at: z.number(),
});

export function encodeOrder(order: RemovalOrder): string {
  return `${JSON.stringify(order)}\n`;
}

/** Undefined when it is none. */
export function decodeOrder(text: string): RemovalOrder | undefined {
  try {
    const parsed = order.safeParse(JSON.parse(text));
    return parsed.success ? { ...parsed.data, task: parsed.data.task } : undefined;
  } catch {
    return undefined;
  }
}
