import type { Setting } from '../../domain/config/model.js';
import type { PreflightRole } from '../../domain/preflight/model.js';
import type { CliContext, ExitCode } from './context.js';
import type { OutputFormat } from './output.js';

/** What a daemon is started with. */
export interface DaemonOptions {
  readonly dataDir: string | undefined;
  readonly root: string | undefined;
  readonly config: string | undefined;
  /** Settings given as flags. */
  readonly flags: Readonly<Partial<Record<Setting, string>>>;
}

export interface DevOptions extends DaemonOptions {
  readonly apply: readonly string[];
  readonly watch: boolean;
}

/** Those of the server whose machine it is. */
export interface AcceptRollbackOptions extends DaemonOptions {
  readonly yes: boolean;
  readonly output: OutputFormat;
}

export interface RegisterOptions {
  readonly dataDir: string | undefined;
  readonly root: string | undefined;
  /** `host` or `host:port`. */
  readonly server: string;
  readonly account: string;
  /** `-` for standard input; undefined: HOLDFAST_TOKEN has the token. */
  readonly tokenFile: string | undefined;
  readonly ca: string;
  readonly caSha256: string | undefined;
  readonly output: OutputFormat;
}

export interface AdoptOptions {
  readonly dataDir: string | undefined;
  readonly root: string | undefined;
  readonly undo: boolean;
  readonly dryRun: boolean;
  readonly yes: boolean;
  readonly output: OutputFormat;
}

export interface PreflightOptions {
  readonly role: PreflightRole;
  readonly server: string | undefined;
  readonly ca: string | undefined;
  readonly caSha256: string | undefined;
  /** CIDRs. */
  readonly range: readonly string[];
  /** URLs. */
  readonly target: readonly string[];
  readonly knownAnswer: string | undefined;
  readonly udpEcho: string | undefined;
  readonly repositories: boolean;
  /** Names of checks. */
  readonly skip: readonly string[];
  readonly root: string | undefined;
  readonly output: OutputFormat;
}

export interface InstallOptions {
  readonly dataDir: string | undefined;
  readonly root: string | undefined;
  readonly config: string | undefined;
  readonly output: OutputFormat;
}

/** The verbs that need more than a client: they run the daemon, or work on its files. */
export interface LocalVerbs {
  dev(context: CliContext, options: DevOptions): Promise<ExitCode>;
  agent(context: CliContext, options: DaemonOptions): Promise<ExitCode>;
  server(context: CliContext, options: DaemonOptions): Promise<ExitCode>;
  acceptRollback(context: CliContext, options: AcceptRollbackOptions): Promise<ExitCode>;
  register(context: CliContext, options: RegisterOptions): Promise<ExitCode>;
  adopt(context: CliContext, options: AdoptOptions): Promise<ExitCode>;
  preflight(context: CliContext, options: PreflightOptions): Promise<ExitCode>;
  install(context: CliContext, options: InstallOptions): Promise<ExitCode>;
  restore(context: CliContext, options: RestoreOptions): Promise<ExitCode>;
  uninstall(context: CliContext, options: UninstallOptions): Promise<ExitCode>;
  verifyAudit(context: CliContext, options: VerifyAuditOptions): Promise<ExitCode>;
}

export interface UninstallOptions {
  readonly verb: 'cleanup' | 'uninstall' | 'reinstall';
  readonly dataDir: string | undefined;
  readonly root: string | undefined;
  /** What a reinstall runs. */
  readonly commandFile: string | undefined;
  readonly dryRun: boolean;
  readonly yes: boolean;
  readonly reboot: boolean;
  readonly output: OutputFormat;
}

export interface VerifyAuditOptions {
  readonly dataDir: string | undefined;
  /** `<sequence>:<digest>` that somebody else has kept. */
  readonly head: string | undefined;
  readonly output: OutputFormat;
}

export interface RestoreOptions {
  readonly dataDir: string | undefined;
  readonly copy: string | undefined;
  /** An archive of `holdfast backup`, to take instead of a copy. */
  readonly backup: string | undefined;
  /** Members of the etcd that the archive is to go into, separated by commas. */
  readonly etcd: string | undefined;
  readonly etcdCluster: string | undefined;
  readonly etcdCa: string | undefined;
  readonly etcdCert: string | undefined;
  readonly etcdKey: string | undefined;
  /** Replaces what stands in that etcd. */
  readonly force: boolean;
  readonly list: boolean;
  readonly output: OutputFormat;
}
