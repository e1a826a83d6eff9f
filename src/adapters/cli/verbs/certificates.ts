import type { Command } from 'commander';
import { client, type Wiring } from './options.js';

export function addRootVerbs(program: Command, { context, done }: Wiring): void {
  const ca = program.command('ca').description('the roots of a control plane: list, rotate, retire');
  client(ca.command('list').description('the roots, and who still has certificates of a former one')).action(async (options) =>
    done(await (await import('../roots.js')).listRoots(context, options)),
  );
  client(
    ca
      .command('rotate <root>')
      .description('make a new root of `nodes` or `registration`; the former one counts until it is retired'),
  )
    .option('-y, --yes', 'do not ask', false)
    .action(async (name, options) => done(await (await import('../roots.js')).rotateRoot(context, name, options)));
  client(ca.command('retire <root>').description('the former root counts no more; refused while certificates of it are in use'))
    .option('--force', 'revoke those that are in use: their nodes have to register again', false)
    .option('-y, --yes', 'do not ask', false)
    .action(async (name, options) => done(await (await import('../roots.js')).retireRoot(context, name, options)));
}

export function addCertificateVerbs(program: Command, { context, done }: Wiring): void {
  const cert = program
    .command('cert')
    .description('certificates of those who operate a control plane from elsewhere: create, list, revoke');
  client(cert.command('create <name>').description('make a key here, and have it certified for a person or a program'))
    .requiredOption('--role <role>', 'viewer, operator or admin')
    .requiredOption('--out <dir>', 'a new folder for admin.crt, admin.key and admin-ca.crt')
    .option('--ttl <lifetime>', 'how long it is good, 1m to 365d', '365d')
    .action(async (name, options) => done(await (await import('../cert.js')).createCertificate(context, name, options)));
  client(cert.command('list').description('who has one, and until when')).action(async (options) =>
    done(await (await import('../cert.js')).listCertificates(context, options)),
  );
  client(cert.command('revoke <serial>').description('let nobody in with it from now on; what is open with it ends'))
    .option('--reason <text>', 'why, for the log and for whoever has it', '')
    .option('-y, --yes', 'do not ask', false)
    .action(async (serial, options) => done(await (await import('../revoke.js')).revoke(context, 'person', serial, options)));
}
