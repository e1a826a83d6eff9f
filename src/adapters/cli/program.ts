import { Command, CommanderError, Help, InvalidArgumentError, Option } from 'commander';
import { defaults } from '../../domain/config/defaults.js';
import { type Daemon, flagOf, type Setting, settingNames, settings } from '../../domain/config/model.js';
import { renderSetting } from '../../domain/config/render.js';
import { AgentError } from '../../domain/kernel/errors.js';
import { DEFAULT_NAMESPACE } from '../../domain/resource/model.js';
import { type CliContext, type ExitCode, exitCodes, UsageError } from './context.js';
import { type OutputFormat, paint, structured } from './output.js';
import { SYSTEM_DATA_DIR } from './target.js';

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

/** The verbs that need more than a client: they run the daemon, or work on its files. */
export interface LocalVerbs {
  dev(context: CliContext, options: DevOptions): Promise<ExitCode>;
  agent(context: CliContext, options: DaemonOptions): Promise<ExitCode>;
  server(context: CliContext, options: DaemonOptions): Promise<ExitCode>;
  register(context: CliContext, options: RegisterOptions): Promise<ExitCode>;
  restore(context: CliContext, options: RestoreOptions): Promise<ExitCode>;
  verifyAudit(context: CliContext, options: VerifyAuditOptions): Promise<ExitCode>;
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
  readonly list: boolean;
  readonly output: OutputFormat;
}

/** Parses and runs one command line. Every failure is told on standard error and becomes an exit code. */
export async function runCli(
  argv: readonly string[],
  context: CliContext,
  version: string,
  local: LocalVerbs,
): Promise<ExitCode> {
  let exitCode: ExitCode = exitCodes.done;
  const program = buildProgram(context, version, local, (code) => {
    exitCode = code;
  });
  try {
    await program.parseAsync(argv, { from: 'user' });
    return exitCode;
  } catch (error) {
    return report(context, error);
  }
}

function report({ console, signal }: CliContext, error: unknown): ExitCode {
  // The parser has said it already.
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.done : exitCodes.usage;
  const say = (text: string) => console.err(`${paint(console, 'red', 'error')}: ${text}\n`);
  if (signal.aborted && error === signal.reason) {
    say('interrupted');
    return exitCodes.failed;
  }
  if (error instanceof UsageError) {
    say(`${error.message}\n(holdfast --help shows every verb)`);
    return exitCodes.usage;
  }
  if (!(error instanceof AgentError)) {
    say(error instanceof Error ? error.message : String(error));
    return exitCodes.failed;
  }
  say(`${error.message}\n  what to do: ${origin(error).remedy}`);
  return error.code === 'admin.unreachable' ? exitCodes.unreachable : exitCodes.failed;
}

/** What to mend when a start failed is what made it fail. */
function origin(error: AgentError): AgentError {
  return error.code === 'agent.start_failed' && error.cause instanceof AgentError ? origin(error.cause) : error;
}

function buildProgram(context: CliContext, version: string, local: LocalVerbs, done: (code: ExitCode) => void): Command {
  const { console } = context;
  const program = new Command('holdfast')
    .description('Services with stable addresses, balanced by native threads, driven by an ordered log.')
    .version(version, '-V, --version', 'print the version')
    .showHelpAfterError('(holdfast --help shows every verb)')
    .configureHelp({ optionDescription, minWidthToWrap: 30 })
    .exitOverride()
    .configureOutput({ writeOut: console.out, writeErr: console.err });
  const adders = [
    addDev,
    addFleetDaemons,
    addManifestVerbs,
    addReadingVerbs,
    addExplain,
    addDelete,
    addOperations,
    addRestore,
    addAudit,
  ];
  for (const add of [...adders, addInstructionVerbs, addNodeVerbs, addTokenVerbs, addAgentVerbs, addBackup])
    add(program, { context, local, done });
  program
    .command('version')
    .description('print the version')
    .addOption(outputOption())
    .action(({ output }) => console.out(output === 'table' ? `holdfast ${version}\n` : structured(output, { version })));
  return program;
}

/** That something is off or empty unless it is given needs no words. */
function optionDescription(option: Option): string {
  const { defaultValue, description } = option;
  const isNothing = defaultValue === false || (Array.isArray(defaultValue) && defaultValue.length === 0);
  return isNothing ? description : new Help().optionDescription(option);
}

interface Wiring {
  readonly context: CliContext;
  readonly local: LocalVerbs;
  readonly done: (code: ExitCode) => void;
}

function addDev(program: Command, { context, local, done }: Wiring): void {
  const command = daemon(
    program.command('dev').description('run agent and control plane in one process on this machine: no root, loopback only'),
    'dev',
    './.holdfast',
  )
    .option('--apply <path>', 'apply a manifest or a folder of them at the start; may be repeated', collect, [])
    .option('--watch', 'apply again whenever they change, and remove what they no longer hold', false);
  command.action(async (options: Record<string, unknown>) => {
    const apply = options.apply as readonly string[];
    const watch = options.watch === true;
    if (watch && apply.length === 0) command.error('error: --watch needs --apply', { exitCode: exitCodes.usage });
    done(await local.dev(context, { ...daemonOptions(command), apply, watch }));
  });
}

function addFleetDaemons(program: Command, { context, local, done }: Wiring): void {
  const agent = daemon(
    program
      .command('agent')
      .description('run the agent of this machine: it holds a link to its control plane and carries traffic'),
    'agent',
    SYSTEM_DATA_DIR,
  );
  agent.action(async () => done(await local.agent(context, daemonOptions(agent))));
  const server = daemon(
    program.command('server').description('run a control plane for many machines'),
    'server',
    SYSTEM_DATA_DIR,
  );
  server.action(async () => done(await local.server(context, daemonOptions(server))));
  program
    .command('register')
    .description('make this machine a node of a control plane; the token comes from HOLDFAST_TOKEN or a file')
    .requiredOption('--server <host>', 'the control plane, host or host:port (default port: 9191)')
    .requiredOption('--account <name>', 'the account that the token was made for')
    .requiredOption('--ca <file>', 'registration-ca.crt of the control plane')
    .option('--ca-sha256 <hex>', 'SHA-256 that the bytes of that file must have')
    .option('--token-file <file>', 'where the token stands; - for standard input')
    .addOption(dataDirOption(`where the state of the agent stands (default: ${SYSTEM_DATA_DIR})`))
    .option('--root <dir>', 'prefix of every absolute path')
    .addOption(outputOption())
    .action(async (options) => done(await local.register(context, options)));
}

/** The options of a daemon: where things are, and the settings that it reads. */
function daemon(command: Command, which: Daemon, dataDir: string): Command {
  command
    .addOption(dataDirOption(`where its state stands (default: ${dataDir})`))
    .option('--root <dir>', 'prefix of every absolute path')
    .option('--config <file>', 'configuration file (default: holdfast.yaml in the data directory)');
  const fallback = defaults(which === 'dev' ? 'dev' : 'production');
  for (const setting of settingNames) {
    const { value, help, of } = settings[setting];
    // As text only: what the parser fills in would look like a flag that was given, over file and variables.
    if (of.includes(which))
      command.option(`${flagOf(setting)} <${value}>`, `${help} (default: ${renderSetting(setting, fallback)})`);
  }
  return command;
}

function daemonOptions(command: Command): DaemonOptions {
  const { dataDir, root, config } = command.opts<Record<string, unknown>>();
  return { dataDir: text(dataDir), root: text(root), config: text(config), flags: flagsOf(command) };
}

function flagsOf(command: Command): Partial<Record<Setting, string>> {
  const given = settingNames.flatMap((setting) => {
    const option = command.options.find(({ long }) => long === flagOf(setting));
    const value: unknown = option === undefined ? undefined : command.getOptionValue(option.attributeName());
    return typeof value === 'string' ? [[setting, value] as const] : [];
  });
  return Object.fromEntries(given);
}

function addManifestVerbs(program: Command, { context, done }: Wiring): void {
  const manifest = (command: Command) =>
    client(command)
      .requiredOption('-f, --filename <path>', 'a manifest, a folder of them, or - for standard input; may be repeated', collect)
      .option('--prune', 'remove what the same source applied before and does not hold now', false)
      .option('--source <name>', 'who applies, for --prune (default: the paths)');
  manifest(program.command('apply').description('make resources as the manifests say, all or nothing'))
    .option('--dry-run', 'say what would change, change nothing', false)
    .action(async (options) => done(await (await import('./apply.js')).apply(context, options)));
  manifest(program.command('diff').description('show what apply would change'))
    .option('--exit-code', 'exit with 1 when there are differences', false)
    .action(async (options) => done(await (await import('./apply.js')).diff(context, options)));
}

function addReadingVerbs(program: Command, { context, done }: Wiring): void {
  selecting(program.command('get [kind] [name]').description('list resources: services, endpoints or all'))
    .option('-w, --watch', 'go on with every change', false)
    .action(async (kind, name, options) => done(await (await import('./get.js')).get(context, given(kind, name), options)));
  selecting(program.command('describe <kind> [name]').description('show everything about resources, with their traffic')).action(
    async (kind, name, options) => done(await (await import('./get.js')).describe(context, given(kind, name), options)),
  );
  selecting(program.command('watch [kind] [name]').description('follow changes, a line each')).action(
    async (kind, name, options) => done(await (await import('./get.js')).watch(context, given(kind, name), options)),
  );
}

function addExplain(program: Command, { context, done }: Wiring): void {
  client(program.command('explain <kind> [name]').description('why an endpoint of a service gets connections, or does not'))
    .addOption(namespaceOption())
    .option('--port <port>', 'only this port, by name or number')
    .option('--from <address>', 'which endpoint a client with this address gets')
    .action(async (kind, name, options) =>
      done(await (await import('./explain.js')).explain(context, given(kind, name), options)),
    );
}

function addDelete(program: Command, { context, done }: Wiring): void {
  client(
    program.command('delete [kind] [names...]').description('delete resources by name or by manifest, all or nothing; or nodes'),
  )
    .addOption(namespaceOption())
    .option('-f, --filename <path>', 'delete what the manifest names; may be repeated', collect, [])
    .option('--dry-run', 'say what would be deleted', false)
    .option('--ignore-not-found', 'what is absent already is no error', false)
    .option('-y, --yes', 'do not ask before a node is removed', false)
    .action(async (kind, names, options) => {
      const args = given(kind, ...names);
      const { nodesToRemove, removeNodes } = await import('./nodes.js');
      const nodes = nodesToRemove(args);
      if (nodes !== undefined) done(await removeNodes(context, nodes, options));
      else done(await (await import('./delete.js')).remove(context, args, options));
    });
}

function addInstructionVerbs(program: Command, { context, done }: Wiring): void {
  client(program.command('send <node> <type>').description('tell a node to do something'))
    .option('--json <text>', 'what the instruction says, a JSON object; - for standard input')
    .option('--wait', 'wait for the result and print it; exit code 1 when it is an error', false)
    .option('--expires <duration>', 'it is not started later than this (default: 1h)')
    .option('--tag <tag>', 'its name; the same again is the same instruction (default: a new one)')
    .option('-y, --yes', 'do not ask before a node is uninstalled or reinstalled', false)
    .action(async (node, type, options) => done(await (await import('./instructions.js')).send(context, node, type, options)));
  client(program.command('results [node] [tag]').description('instructions and what came of them, for 24 hours'))
    .option('-w, --watch', 'go on with every change; of one, wait until it has ended', false)
    .action(async (node, tag, options) => done(await (await import('./instructions.js')).results(context, node, tag, options)));
  client(program.command('cancel <node> <tag>').description('do not send an instruction, or ask the node to stop it')).action(
    async (node, tag, options) => done(await (await import('./instructions.js')).cancel(context, node, tag, options)),
  );
}

function addNodeVerbs(program: Command, { context, done }: Wiring): void {
  client(program.command('nodes').description('the nodes of the fleet')).action(async (options) =>
    done(await (await import('./nodes.js')).nodes(context, options)),
  );
  const cordoning = (verb: string, cordoned: boolean, description: string) =>
    client(program.command(`${verb} <node>`).description(description)).action(async (node, options) =>
      done(await (await import('./nodes.js')).cordon(context, node, cordoned, options)),
    );
  cordoning('cordon', true, 'hold instructions back from a node');
  cordoning('uncordon', false, 'let a node have its instructions again');
  client(program.command('revoke <serial>').description('refuse one certificate from now on; its node stays'))
    .option('--reason <text>', 'why, for the log and for whoever has it', '')
    .option('-y, --yes', 'do not ask', false)
    .action(async (serial, options) => done(await (await import('./nodes.js')).revoke(context, serial, options)));
}

function addBackup(program: Command, { context, done }: Wiring): void {
  client(
    program
      .command('backup <file>')
      .description(
        'put the whole state of a control plane into a new archive, while it serves; `restore --backup` takes it back',
      ),
  )
    .option('--with-key', 'with the key that secrets are sealed with: whoever has the archive then has them all', false)
    .action(async (file, options) => done(await (await import('./backup.js')).backup(context, file, options)));
}

/** What is asked of an agent. */
function addAgentVerbs(program: Command, { context, done }: Wiring): void {
  client(
    program.command('resync').description('take the whole state from the control plane anew; exit code 1 when it is held back'),
  )
    .option('--accept', 'take it over whatever it removes, also what is held back already', false)
    .option('--timeout <duration>', 'how long to wait for the control plane, 110s at most', '30s')
    .action(async (options) => done(await (await import('./agent.js')).resync(context, options)));
  client(program.command('journal').description('the instructions that this node knows, and how far each is')).action(
    async (options) => done(await (await import('./agent.js')).journal(context, options)),
  );
}

function addTokenVerbs(program: Command, { context, done }: Wiring): void {
  const token = program.command('token').description('enrolment tokens: create, list, revoke');
  client(token.command('create').description('make a token that one machine can register with'))
    .option('--ttl <duration>', 'how long it can be used', '1h')
    .option('--replace <node>', 'the machine takes the place of this node')
    .option('--account <name>', 'of the node (default: that of the control plane)')
    .action(async (options) => done(await (await import('./token.js')).createToken(context, options)));
  client(token.command('list').description('tokens and who used them')).action(async (options) =>
    done(await (await import('./token.js')).listTokens(context, options)),
  );
  client(token.command('revoke <id>').description('make a token useless')).action(async (id, options) =>
    done(await (await import('./token.js')).revokeToken(context, id, options)),
  );
}

function addOperations(program: Command, { context, done }: Wiring): void {
  client(
    program.command('status').description('how the daemon is, what is wrong and what to do; exit code 4 when degraded'),
  ).action(async (options) => done(await (await import('./operations.js')).status(context, options)));
  client(program.command('events').description('what happened'))
    .option('-w, --watch', 'go on with new ones', false)
    .action(async (options) => done(await (await import('./operations.js')).events(context, options)));
  scoped(client(program.command('top').description('traffic per service port')))
    .option('--once', 'print once, also on a terminal', false)
    .action(async (options) => done(await (await import('./operations.js')).top(context, options)));
}

function addRestore(program: Command, { context, local, done }: Wiring): void {
  program
    .command('restore [copy]')
    .description('put the newest intact copy of the log in place of a damaged one; the daemon must be stopped')
    .addOption(dataDirOption('the data directory (default: ./.holdfast if there is one, else /var/lib/holdfast)'))
    .option('--list', 'list the copies', false)
    .option('--backup <file>', 'put back a whole control plane from an archive of `holdfast backup`')
    .addOption(outputOption())
    .action(async (copy, options) => done(await local.restore(context, { ...options, copy })));
}

function addAudit(program: Command, { context, local, done }: Wiring): void {
  const audit = program.command('audit').description('the audit log: verify');
  audit
    .command('verify')
    .description('read the whole audit log, also while the daemon writes it; exit code 1 when it is not as it was written')
    .option('--head <sequence:digest>', 'a head that somebody else has kept: shows whether the end was cut')
    .addOption(dataDirOption(`the data directory of the daemon (default: ./.holdfast, else ${SYSTEM_DATA_DIR})`))
    .addOption(outputOption())
    .action(async (options) => done(await local.verifyAudit(context, options)));
}

function client(command: Command): Command {
  return command
    .addOption(
      dataDirOption('the data directory of the daemon to ask (default: ./.holdfast if there is one, else /var/lib/holdfast)'),
    )
    .addOption(outputOption());
}

function scoped(command: Command): Command {
  return command.addOption(namespaceOption()).option('-A, --all-namespaces', 'all namespaces', false);
}

function namespaceOption(): Option {
  return new Option('-n, --namespace <name>', 'the namespace').default(DEFAULT_NAMESPACE);
}

function selecting(command: Command): Command {
  return scoped(client(command)).option('-l, --selector <labels>', 'only with these labels: a=b,c!=d,e,!f');
}

function dataDirOption(description: string): Option {
  return new Option('--data-dir <dir>', description).argParser((value) => {
    if (value === '') throw new InvalidArgumentError('expected a folder');
    return value;
  });
}

function outputOption(): Option {
  return new Option('-o, --output <format>', 'how to print').choices(['table', 'json', 'yaml']).default('table');
}

function collect(value: string, former: readonly string[] | undefined): readonly string[] {
  return [...(former ?? []), value];
}

function given(...args: readonly (string | undefined)[]): readonly string[] {
  return args.filter((arg) => arg !== undefined);
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
