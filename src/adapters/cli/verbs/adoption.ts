import type { Command } from 'commander';
import { SYSTEM_DATA_DIR } from '../target.js';
import { dataDirOption, outputOption, type Wiring } from './options.js';

/** From an older agent to this one, and back. */
export function addAdopt(program: Command, { context, local, done }: Wiring): void {
  program
    .command('adopt')
    .description('take over the configuration and certificates of an older agent of this machine, which must be stopped')
    .option('--undo', 'give them back, renewed ones too, so that the older agent can start again', false)
    .option('--dry-run', 'only say what would be done', false)
    .option('--yes', 'without being asked', false)
    .addOption(dataDirOption(`where the state of the agent stands (default: ${SYSTEM_DATA_DIR})`))
    .option('--root <dir>', 'prefix of every absolute path')
    .addOption(outputOption())
    .action(async (options) => done(await local.adopt(context, options)));
}
