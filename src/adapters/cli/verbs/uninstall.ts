import type { Command } from 'commander';
import type { UninstallOptions } from '../local-verbs.js';
import { SYSTEM_DATA_DIR } from '../target.js';
import { dataDirOption, outputOption, type Wiring } from './options.js';

/** A node that leaves, and what it leaves behind. */
export function addRemovalVerbs(program: Command, wiring: Wiring): void {
  removal(program, wiring, 'cleanup', 'remove what the node has made on this machine, and keep the node');
  removal(program, wiring, 'uninstall', 'remove the node from this machine, with Kubernetes where kubeadm has joined it');
  removal(program, wiring, 'reinstall', 'uninstall, then run a command that installs the machine anew').requiredOption(
    '--command-file <file>',
    'the command, for /bin/bash',
  );
}

function removal(
  program: Command,
  { context, local, done }: Wiring,
  verb: UninstallOptions['verb'],
  description: string,
): Command {
  const command = program
    .command(verb)
    .description(description)
    .option('--dry-run', 'only say what would be removed', false)
    .option('--yes', 'without being asked', false);
  if (verb !== 'cleanup') command.option('--reboot', 'start the machine anew in the end, also when a step has failed', false);
  return command
    .addOption(dataDirOption(`where the state of the agent stands (default: ${SYSTEM_DATA_DIR})`))
    .option('--root <dir>', 'prefix of every absolute path')
    .addOption(outputOption())
    .action(async (options) => done(await local.uninstall(context, { reboot: false, ...options, verb })));
}
