import { printable } from '../../domain/kernel/printable.js';

const colours: Readonly<Record<string, number>> = { warn: 33, error: 31, fatal: 31 };

/** `12:30:01.250 WARN  could not follow error="no route" retryMs=200`, from a JSON line. */
export function terminalLine(json: string, { colour }: { readonly colour: boolean }): string {
  const line: Readonly<Record<string, unknown>> = JSON.parse(json);
  const { level, time, msg, ...fields } = line;
  const name = String(level).toUpperCase().padEnd(5);
  const paint = colour ? colours[String(level)] : undefined;
  return `${[
    String(time).slice(11, 23),
    paint === undefined ? name : `\u001b[${paint}m${name}\u001b[0m`,
    printable(String(msg ?? '')),
    ...Object.entries(fields).map(([key, value]) => `${printable(key)}=${show(value)}`),
  ].join(' ')}\n`;
}

/** Errors by their message alone: the stack is in the JSON lines. */
function show(value: unknown): string {
  const text = isError(value) ? value.message : value;
  return printable(typeof text === 'string' && /^[\w./:@+-]+$/.test(text) ? text : JSON.stringify(text));
}

function isError(value: unknown): value is { readonly message: string } {
  return (
    typeof value === 'object' && value !== null && 'stack' in value && 'message' in value && typeof value.message === 'string'
  );
}
