import type { Command } from 'commander';
import { client, collect, given, namespaceOption, reading, selecting, type Wiring } from './options.js';

export function addManifestVerbs(program: Command, { context, done }: Wiring): void {
  const manifest = (command: Command) =>
    client(command)
      .requiredOption('-f, --filename <path>', 'a manifest, a folder of them, or - for standard input; may be repeated', collect)
      .option('--prune', 'remove what the same source applied before and does not hold now', false)
      .option('--source <name>', 'who applies, for --prune (default: the paths)');
  manifest(program.command('apply').description('make resources as the manifests say, all or nothing'))
    .option('--dry-run', 'say what would change, change nothing', false)
    .action(async (options) => done(await (await import('../apply.js')).apply(context, options)));
  manifest(program.command('diff').description('show what apply would change'))
    .option('--exit-code', 'exit with 1 when there are differences', false)
    .action(async (options) => done(await (await import('../apply.js')).diff(context, options)));
}

export function addReadingVerbs(program: Command, { context, done }: Wiring): void {
  reading(selecting(program.command('get [kind] [name]').description('list resources: services, endpoints or all; or nodes')))
    .option('-w, --watch', 'go on with every change', false)
    .action(async (kind, name, options) => {
      const args = given(kind, name);
      const { getNodes, namedNodes } = await import('../nodes.js');
      const nodes = namedNodes(args);
      if (nodes !== undefined) done(await getNodes(context, nodes, options));
      else done(await (await import('../get.js')).get(context, args, options));
    });
  reading(
    selecting(
      program
        .command('describe <kind> [name]')
        .description('show everything about resources, with their traffic; or about nodes'),
    ),
  ).action(async (kind, name, options) => {
    const args = given(kind, name);
    const { describeNodes, namedNodes } = await import('../nodes.js');
    const nodes = namedNodes(args);
    if (nodes !== undefined) done(await describeNodes(context, nodes, options));
    else done(await (await import('../get.js')).describe(context, args, options));
  });
  reading(selecting(program.command('watch [kind] [name]').description('follow changes, a line each'))).action(
    async (kind, name, options) => done(await (await import('../get.js')).watch(context, given(kind, name), options)),
  );
}

export function addExplain(program: Command, { context, done }: Wiring): void {
  client(program.command('explain <kind> [name]').description('why an endpoint of a service gets connections, or does not'))
    .addOption(namespaceOption())
    .option('--port <port>', 'only this port, by name or number')
    .option('--from <address>', 'which endpoint a client with this address gets')
    .action(async (kind, name, options) =>
      done(await (await import('../explain.js')).explain(context, given(kind, name), options)),
    );
}

export function addDelete(program: Command, { context, done }: Wiring): void {
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
      const { nodesToRemove, removeNodes } = await import('../nodes.js');
      const nodes = nodesToRemove(args);
      if (nodes !== undefined) done(await removeNodes(context, nodes, options));
      else done(await (await import('../delete.js')).remove(context, args, options));
    });
}
