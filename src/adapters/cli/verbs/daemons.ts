import type { Command } from 'commander';
import { defaults } from '../../../domain/config/defaults.js';
import { type Daemon, flagOf, type Setting, settingNames, settings } from '../../../domain/config/model.js';
import { renderSetting } from '../../../domain/config/render.js';
import { exitCodes } from '../context.js';
import type { DaemonOptions } from '../local-verbs.js';
import { SYSTEM_DATA_DIR } from '../target.js';
import { collect, dataDirOption, outputOption, type Wiring } from './options.js';

export function addDev(program: Command, { context, local, done }: Wiring): void {
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

export function addFleetDaemons(program: Command, { context, local, done }: Wiring): void {
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
  server
    .command('accept-rollback')
    .description('go on with an etcd that was put back to an older state; with the options of the server, which is stopped')
    .option('-y, --yes', 'do not ask', false)
    .addOption(outputOption())
    .action(async ({ yes, output }) => done(await local.acceptRollback(context, { ...daemonOptions(server), yes, output })));
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

function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
