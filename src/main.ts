import type { CliContext, ExitCode } from './adapters/cli/context.js';
import type {
  AcceptRollbackOptions,
  AdoptOptions,
  DaemonOptions,
  DevOptions,
  InstallOptions,
  LocalVerbs,
  PreflightOptions,
  RegisterOptions,
  RestoreOptions,
  UninstallOptions,
  VerifyAuditOptions,
} from './adapters/cli/local-verbs.js';

/** The verbs that run the daemon or work on its files. They load what only they need: a client starts in a tenth of a second. */
export const localVerbs: LocalVerbs = {
  async dev(context: CliContext, options: DevOptions): Promise<ExitCode> {
    return (await import('./composition/dev.js')).dev(context, options);
  },
  async agent(context: CliContext, options: DaemonOptions): Promise<ExitCode> {
    return (await import('./composition/agent.js')).agent(context, options);
  },
  async server(context: CliContext, options: DaemonOptions): Promise<ExitCode> {
    return (await import('./composition/server.js')).server(context, options);
  },
  async acceptRollback(context: CliContext, options: AcceptRollbackOptions): Promise<ExitCode> {
    return (await import('./composition/accept-rollback.js')).acceptRollback(context, options);
  },
  async register(context: CliContext, options: RegisterOptions): Promise<ExitCode> {
    return (await import('./composition/register.js')).register(context, options);
  },
  async adopt(context: CliContext, options: AdoptOptions): Promise<ExitCode> {
    return (await import('./composition/adopt.js')).adopt(context, options);
  },
  async preflight(context: CliContext, options: PreflightOptions): Promise<ExitCode> {
    return (await import('./composition/preflight.js')).preflight(context, options);
  },
  async install(context: CliContext, options: InstallOptions): Promise<ExitCode> {
    return (await import('./composition/install.js')).install(context, options);
  },
  async restore(context: CliContext, options: RestoreOptions): Promise<ExitCode> {
    return (await import('./composition/restore.js')).restore(context, options);
  },
  async uninstall(context: CliContext, options: UninstallOptions): Promise<ExitCode> {
    return (await import('./composition/uninstall.js')).uninstall(context, options);
  },
  async verifyAudit(context: CliContext, options: VerifyAuditOptions): Promise<ExitCode> {
    return (await import('./composition/audit.js')).verifyAudit(context, options);
  },
};
