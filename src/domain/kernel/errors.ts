/** What a failure means to whoever asked, whatever the technology: gRPC status and exit code follow from it. */
export type ErrorKind =
  | 'invalid'
  | 'not_found'
  | 'conflict'
  | 'denied'
  | 'unavailable'
  | 'exhausted'
  | 'unimplemented'
  | 'internal';

interface CodeFacts {
  readonly kind: ErrorKind;
  /** Whether the same call can succeed later without anybody's help. */
  readonly retry: boolean;
  /** For people: what to do. */
  readonly remedy: string;
}

/** Every failure that leaves a port or a use case, as `capability.reason`. What follows from a code hangs on the code alone. */
export const errorCodes = {
  'agent.already_started': { kind: 'conflict', retry: false, remedy: 'start an agent once' },
  'agent.duplicate_subsystem': { kind: 'conflict', retry: false, remedy: 'register each subsystem once' },
  'agent.incomplete': { kind: 'invalid', retry: false, remedy: 'make the agent from all parts that it needs' },
  'agent.invalid_subsystem': { kind: 'invalid', retry: false, remedy: 'register a subsystem that has a name' },
  'agent.late_registration': { kind: 'conflict', retry: false, remedy: 'register every subsystem before the start' },
  'agent.not_ready': {
    kind: 'unavailable',
    retry: true,
    remedy: 'look at `holdfast status` for what each subsystem waits for; what is ready serves',
  },
  'agent.start_failed': { kind: 'internal', retry: false, remedy: 'mend the cause that is named and start again' },
  'agent.stopped': { kind: 'unavailable', retry: false, remedy: 'start another agent' },
  'agent.timed_out': { kind: 'unavailable', retry: true, remedy: 'look in the log for what it was waiting for' },
  'agent.data_dir_locked': {
    kind: 'conflict',
    retry: false,
    remedy: 'stop the daemon that uses this data directory, or name another with --data-dir',
  },
  'agent.data_dir_unusable': {
    kind: 'invalid',
    retry: false,
    remedy: 'name a folder that this user may make and write in with --data-dir or HOLDFAST_DATA_DIR',
  },
  'admin.failed': { kind: 'internal', retry: false, remedy: 'look into the log of the daemon' },
  'admin.not_served': {
    kind: 'internal',
    retry: false,
    remedy: 'give the data directory to the user that runs the daemon, and let nothing else stand in its `admin` folder',
  },
  'admin.too_large': { kind: 'exhausted', retry: false, remedy: 'split the manifests: one call takes 64 MiB' },
  'admin.unreachable': {
    kind: 'unavailable',
    retry: true,
    remedy: 'start `holdfast dev`, or name its data directory with --data-dir',
  },
  'audit.not_written': { kind: 'unavailable', retry: true, remedy: 'free disk space or mend the disk, then try again' },
  'certificate.csr_invalid': {
    kind: 'invalid',
    retry: false,
    remedy: 'send a PKCS#10 request in DER, signed with its own key: RSA of 2048 to 4096 bits, P-256, P-384 or Ed25519',
  },
  'certificate.failed': { kind: 'internal', retry: false, remedy: 'look into the log of the control plane' },
  'certificate.token_refused': {
    kind: 'denied',
    retry: false,
    remedy: 'make a new token with `holdfast token create`; the log of the server says what was wrong with this one',
  },
  'certificate.too_many': { kind: 'exhausted', retry: true, remedy: 'wait a minute and try again' },
  'certificate.unknown_account': { kind: 'not_found', retry: false, remedy: 'name the account that the token was made for' },
  'certificate.revoked': { kind: 'denied', retry: false, remedy: 'register the node again with a new token' },
  'config.invalid': { kind: 'invalid', retry: false, remedy: 'mend the configuration at the place that is named' },
  'dataplane.addon_missing': { kind: 'internal', retry: false, remedy: 'run `npm run build`' },
  'identity.malformed': {
    kind: 'invalid',
    retry: false,
    remedy: 'put the file back from a copy; remove it only if this node may become a new one',
  },
  'identity.not_written': {
    kind: 'unavailable',
    retry: true,
    remedy: 'make the data directory writable and free some space, then start again',
  },
  'identity.unreadable': {
    kind: 'invalid',
    retry: false,
    remedy: 'make it a regular file that the daemon may read; remove it only if this node may become a new one',
  },
  'identity.invalid_name': {
    kind: 'invalid',
    retry: false,
    remedy: 'use a DNS-1123 label: 1 to 63 characters of a-z, 0-9 and -, not at either end',
  },
  'instruction.interrupted': {
    kind: 'internal',
    retry: false,
    remedy: 'look at what it left behind, then send it again under a new tag',
  },
  'instruction.not_started': { kind: 'unavailable', retry: true, remedy: 'send it again' },
  'instruction.runner_failed': {
    kind: 'internal',
    retry: true,
    remedy: 'mend what is named: the folder `run` in the data directory, or the task runner, which `npm run build` makes',
  },
  'instruction.running': { kind: 'conflict', retry: true, remedy: 'cancel it, or wait for its end' },
  'link.refused': { kind: 'denied', retry: true, remedy: 'mend the cause that the server names' },
  'link.unreachable': {
    kind: 'unavailable',
    retry: true,
    remedy: 'check the address, the name service and the firewall on the way to the control plane',
  },
  'log.changed': { kind: 'conflict', retry: false, remedy: 'take a snapshot: this is another log than the cursor names' },
  'log.compacted': { kind: 'conflict', retry: false, remedy: 'take a snapshot and watch from its cursor' },
  'log.corrupt': {
    kind: 'internal',
    retry: false,
    remedy: 'run `holdfast restore`, which puts the newest intact copy in place',
  },
  'log.newer_schema': {
    kind: 'invalid',
    retry: false,
    remedy: 'run the newer version that wrote this file, or another data directory',
  },
  'log.not_written': { kind: 'unavailable', retry: true, remedy: 'free disk space or mend the disk, then try again' },
  'log.slow': { kind: 'exhausted', retry: false, remedy: 'take a snapshot and read faster' },
  'log.closed': { kind: 'unavailable', retry: true, remedy: 'try again when the log is open' },
  'log.too_large': { kind: 'exhausted', retry: false, remedy: 'split the change: 200,000 changes and 256 MiB at most' },
  'metrics.not_served': {
    kind: 'unavailable',
    retry: true,
    remedy: 'free the port: it is tried again by itself; or name another in metrics.listen and start again',
  },
  'outbound.failed': { kind: 'unavailable', retry: true, remedy: 'check that the target can be reached from this machine' },
  'outbound.refused': { kind: 'denied', retry: false, remedy: 'name a target outside this machine, over http or https' },
  'outbound.timed_out': { kind: 'unavailable', retry: true, remedy: 'check that the target can be reached from this machine' },
  'outbound.too_large': { kind: 'exhausted', retry: false, remedy: 'ask for less' },
  'resource.conflict': { kind: 'conflict', retry: true, remedy: 'look at what changed meanwhile and try again' },
  'resource.invalid': { kind: 'invalid', retry: false, remedy: 'mend the manifest at the places that are named' },
  'resource.not_found': { kind: 'not_found', retry: false, remedy: 'list what there is with `holdfast get`' },
  'store.outcome_unknown': {
    kind: 'unavailable',
    retry: true,
    remedy: 'ask what became of it before doing it again',
  },
  'store.too_large': { kind: 'exhausted', retry: false, remedy: 'split it: 100 keys and 1 MiB at most in one step' },
  'store.unavailable': { kind: 'unavailable', retry: true, remedy: 'mend the disk or the store of the control plane, then try again' },
  'vip.exhausted': { kind: 'exhausted', retry: true, remedy: 'delete services, or wait until a released address is free again' },
  'vip.unavailable': { kind: 'conflict', retry: false, remedy: 'leave `spec.vip` out, or name a free address of the range' },
  'vip.range_changed': { kind: 'invalid', retry: false, remedy: 'put `vip.range` back: it is set once for a log' },
} as const satisfies Record<string, CodeFacts>;

export type ErrorCode = keyof typeof errorCodes;

/** `problem` and `remedy` are sentences for people. */
export type ErrorFacts = Readonly<Record<string, string>>;

export class AgentError extends Error {
  readonly code: ErrorCode;
  readonly facts: ErrorFacts;

  constructor(code: ErrorCode, facts: ErrorFacts = {}, options?: { cause: unknown }) {
    super(describe(code, facts), options);
    this.name = 'AgentError';
    this.code = code;
    this.facts = facts;
  }

  get kind(): ErrorKind {
    return errorCodes[this.code].kind;
  }

  /** That of the code, unless whoever threw it knew better. */
  get remedy(): string {
    return this.facts.remedy ?? errorCodes[this.code].remedy;
  }
}

/** `problem` is the whole sentence, and other facts are for programs; without one they stand for it, as `name=value`. */
function describe(code: ErrorCode, { problem, remedy: _, ...rest }: ErrorFacts): string {
  const details = Object.entries(rest).map(([name, value]) => `${name}=${value}`);
  return [`${code}:`, ...(problem === undefined ? details : [problem])].join(' ');
}
