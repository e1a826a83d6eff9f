import type { Command } from 'commander';
import { SYSTEM_DATA_DIR } from '../target.js';
import { dataDirOption, outputOption, type Wiring } from './options.js';

export function addInstall(program: Command, { context, local, done }: Wiring): void {
  program
    .command('install')
    .description('run the commands that the control plane has for this machine; the same again goes on where it stopped')
    .addOption(dataDirOption(`where the state of the agent stands (default: ${SYSTEM_DATA_DIR})`))
    .option('--root <dir>', 'prefix of every absolute path')
    .option('--config <file>', 'configuration file (default: holdfast.yaml in the data directory)')
    .addOption(outputOption())
    .action(async (options) => done(await local.install(context, options)));
}
