import type { Command } from 'commander';
import { ASKED_DAEMON, client, collect, dataDirOption, type Wiring } from './options.js';

export function addInstructionVerbs(program: Command, { context, done }: Wiring): void {
  client(program.command('send <node> <type>').description('tell a node to do something'))
    .option('--json <text>', 'what the instruction says, a JSON object or, for kubectl, a list; - for standard input')
    .option('--wait', 'wait for the result and print it; exit code 1 when it is an error', false)
    .option('--follow', 'show what a script says while it runs, then the rest and how it ended', false)
    .option('--expires <duration>', 'it is not started later than this (default: 1h)')
    .option('--tag <tag>', 'its name; the same again is the same instruction (default: a new one)')
    .option('-y, --yes', 'do not ask before a node is uninstalled or reinstalled', false)
    .action(async (node, type, options) => done(await (await import('../instructions.js')).send(context, node, type, options)));
  client(program.command('results [node] [tag]').description('instructions and what came of them, for 24 hours'))
    .option('-w, --watch', 'go on with every change; of one, wait until it has ended', false)
    .action(async (node, tag, options) => done(await (await import('../instructions.js')).results(context, node, tag, options)));
  client(program.command('cancel <node> <tag>').description('do not send an instruction, or ask the node to stop it')).action(
    async (node, tag, options) => done(await (await import('../instructions.js')).cancel(context, node, tag, options)),
  );
}

export function addNodeVerbs(program: Command, { context, done }: Wiring): void {
  client(program.command('nodes').description('the nodes of the fleet')).action(async (options) =>
    done(await (await import('../nodes.js')).nodes(context, options)),
  );
  const cordoning = (verb: string, cordoned: boolean, description: string) =>
    client(program.command(`${verb} <node>`).description(description)).action(async (node, options) =>
      done(await (await import('../nodes.js')).cordon(context, node, cordoned, options)),
    );
  cordoning('cordon', true, 'hold instructions back from a node');
  cordoning('uncordon', false, 'let a node have its instructions again');
  client(program.command('revoke <serial>').description('refuse one certificate from now on; its node stays'))
    .option('--reason <text>', 'why, for the log and for whoever has it', '')
    .option('-y, --yes', 'do not ask', false)
    .action(async (serial, options) => done(await (await import('../revoke.js')).revoke(context, 'node', serial, options)));
}

export function addTokenVerbs(program: Command, { context, done }: Wiring): void {
  const token = program.command('token').description('enrolment tokens: create, list, revoke');
  client(token.command('create').description('make a token that one machine can register with'))
    .option('--ttl <duration>', 'how long it can be used', '1h')
    .option('--replace <node>', 'the machine takes the place of this node')
    .option('--account <name>', 'of the node (default: that of the control plane)')
    .action(async (options) => done(await (await import('../token.js')).createToken(context, options)));
  client(token.command('list').description('tokens and who used them')).action(async (options) =>
    done(await (await import('../token.js')).listTokens(context, options)),
  );
  client(token.command('revoke <id>').description('make a token useless')).action(async (id, options) =>
    done(await (await import('../token.js')).revokeToken(context, id, options)),
  );
}

export function addConnect(program: Command, { context, done }: Wiring): void {
  program
    .command('connect <node> <service>')
    .description('a session with a WebSocket of a service in the cluster of a node: NAMESPACE/NAME:PORT[/path]')
    .addOption(dataDirOption(ASKED_DAEMON))
    .option('--header <name=value>', 'of the handshake; may be given several times', collect)
    .action(async (node, service, options) =>
      done(await (await import('../connect.js')).connect(context, node, service, options)),
    );
}

export function addBackup(program: Command, { context, done }: Wiring): void {
  client(
    program
      .command('backup <file>')
      .description(
        'put the whole state of a control plane into a new archive, while it serves; `restore --backup` takes it back',
      ),
  )
    .option('--with-key', 'with the key that secrets are sealed with: whoever has the archive then has them all', false)
    .action(async (file, options) => done(await (await import('../backup.js')).backup(context, file, options)));
}
