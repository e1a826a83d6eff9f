const milliseconds = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 } as const;

/** A timer of Node holds 31 bits: 2^31 - 1 ms is 24.8 days, so no duration that people write is longer than 24 days. */
const longest = 24 * 24 * milliseconds.h;

/** Milliseconds of `500ms`, `30s`, `5m` or `2h`: one whole number and one unit, 24 days at most; `undefined` when `text` is not that. */
export function durationMs(text: string): number | undefined {
  const match = /^(0|[1-9]\d{0,9})(ms|s|m|h)$/.exec(text);
  if (match === null) return undefined;
  const value = Number(match[1]) * milliseconds[unitOf(match[2])];
  return value <= longest ? value : undefined;
}

/** The shortest spelling that `durationMs` reads back as `ms`. */
export function formatDuration(ms: number): string {
  for (const unit of ['h', 'm', 's'] as const) {
    if (ms !== 0 && ms % milliseconds[unit] === 0) return `${ms / milliseconds[unit]}${unit}`;
  }
  return ms === 0 ? '0s' : `${ms}ms`;
}

function unitOf(text: string | undefined): keyof typeof milliseconds {
  switch (text) {
    case 's':
    case 'm':
    case 'h':
      return text;
    default:
      return 'ms';
  }
}
