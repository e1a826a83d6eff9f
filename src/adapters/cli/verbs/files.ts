import type { Command } from 'commander';
import { defaults } from '../../../domain/config/defaults.js';
import { SYSTEM_DATA_DIR } from '../target.js';
import { dataDirOption, outputOption, type Wiring } from './options.js';

export function addRestore(program: Command, { context, local, done }: Wiring): void {
  program
    .command('restore [copy]')
    .description('put the newest intact copy of the log in place of a damaged one; the daemon must be stopped')
    .addOption(dataDirOption('the data directory (default: ./.holdfast if there is one, else /var/lib/holdfast)'))
    .option('--list', 'list the copies', false)
    .option('--backup <file>', 'put back a whole control plane from an archive of `holdfast backup`')
    .option('--etcd <urls>', 'with --backup: put it into this etcd, for `holdfast server --server-etcd`')
    .option('--etcd-cluster <name>', `name of the control plane in etcd (default: ${defaults('production').serverEtcdCluster})`)
    .option('--etcd-ca <file>', "roots of etcd's certificates")
    .option('--etcd-cert <file>', 'certificate for etcd')
    .option('--etcd-key <file>', 'private key of that certificate')
    .option('--force', 'replace the control plane that is in that etcd, which is archived first', false)
    .addOption(outputOption())
    .action(async (copy, options) => done(await local.restore(context, { ...options, copy })));
}

export function addAudit(program: Command, { context, local, done }: Wiring): void {
  const audit = program.command('audit').description('the audit log: verify');
  audit
    .command('verify')
    .description('read the whole audit log, also while the daemon writes it; exit code 1 when it is not as it was written')
    .option('--head <sequence:digest>', 'a head that somebody else has kept: shows whether the end was cut')
    .addOption(dataDirOption(`the data directory of the daemon (default: ./.holdfast, else ${SYSTEM_DATA_DIR})`))
    .addOption(outputOption())
    .action(async (options) => done(await local.verifyAudit(context, options)));
}
