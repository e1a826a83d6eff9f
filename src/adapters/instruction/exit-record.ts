/** How a task ended, as the runner wrote it. Of each stream, how many bytes are in its file and how many were dropped after these. */
export interface ExitRecord {
  readonly exitCode: number;
  readonly signal: number | undefined;
  readonly timedOut: boolean;
  readonly cancelled: boolean;
  readonly startError: string | undefined;
  readonly stdout: OutputCount;
  readonly stderr: OutputCount;
}

export interface OutputCount {
  readonly kept: number;
  readonly dropped: number;
}

/** native/runner/exit_record.h writes it. */
const form = new RegExp(
  [
    '^holdfast-exit 1',
    'exit-code (?<exitCode>-1|\\d{1,3})',
    'signal (?<signal>\\d{1,3})',
    'timed-out (?<timedOut>[01])',
    'cancelled (?<cancelled>[01])',
    'start-error (?<startError>-|[A-Z0-9]+)',
    'stdout (?<outKept>\\d{1,20}) (?<outDropped>\\d{1,20})',
    'stderr (?<errKept>\\d{1,20}) (?<errDropped>\\d{1,20})',
    'end\\n$',
  ].join('\\n'),
);

/** Undefined unless it is whole. */
export function parseExitRecord(text: string): ExitRecord | undefined {
  const fields = form.exec(text);
  if (fields === null) return undefined;
  const { signal = '', startError = '', ...rest } = fields.groups ?? {};
  const count = (name: string) => Number(rest[name]);
  return {
    exitCode: count('exitCode'),
    signal: signal === '0' ? undefined : Number(signal),
    timedOut: rest.timedOut === '1',
    cancelled: rest.cancelled === '1',
    startError: startError === '-' ? undefined : startError,
    stdout: { kept: count('outKept'), dropped: count('outDropped') },
    stderr: { kept: count('errKept'), dropped: count('errDropped') },
  };
}
