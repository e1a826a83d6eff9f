/**
 * JSON whose whole numbers beyond 2^53 are bigints, exact.
 * @throws SyntaxError
 */
export function parseExact(text: string): unknown {
  return JSON.parse(text, (_key, value: unknown, context?: { readonly source?: string }) => {
    if (typeof value !== 'number' || Number.isSafeInteger(value)) return value;
    const source = context?.source ?? '';
    return /^-?\d+$/.test(source) ? BigInt(source) : value;
  });
}
