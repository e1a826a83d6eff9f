import { type Command, Option } from 'commander';
import { preflightRoles } from '../../../domain/preflight/model.js';
import { outputOption, type Wiring } from './options.js';

const collect = (value: string, before: readonly string[]) => [...before, value];

/** Of a machine, before it becomes a node. */
export function addPreflight(program: Command, { context, local, done }: Wiring): void {
  program
    .command('preflight')
    .description('check whether this machine can become a node; all problems at once')
    .addOption(new Option('--role <role>', 'what it is to be').choices(preflightRoles).default('worker'))
    .option('--server <host>', 'the control plane, host or host:port (default port: 9191)')
    .option('--ca <file>', 'registration-ca.crt of the control plane')
    .option('--ca-sha256 <hex>', 'SHA-256 that the bytes of that file must have')
    .option('--range <cidr>', 'a range that the cluster is to have; may be given again', collect, [])
    .option('--target <url>', 'what the machine must come to, http or https; may be given again', collect, [])
    .option('--known-answer <url>', 'what answers 204 without content unless a portal stands between')
    .option('--udp-echo <host>', 'what sends UDP back, host or host:port (default port: 7)')
    .option('--repositories', 'ask the repositories of apt', false)
    .option('--skip <check>', 'leave a check out; may be given again', collect, [])
    .option('--root <dir>', 'prefix of every absolute path of the machine')
    .addOption(outputOption())
    .action(async (options) => done(await local.preflight(context, options)));
}
