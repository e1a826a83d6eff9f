import { type Command, InvalidArgumentError, Option } from 'commander';
import { DEFAULT_NAMESPACE } from '../../../domain/resource/model.js';
import type { CliContext, ExitCode } from '../context.js';
import type { LocalVerbs } from '../local-verbs.js';

/** What adding verbs takes. */
export interface Wiring {
  readonly context: CliContext;
  readonly local: LocalVerbs;
  readonly done: (code: ExitCode) => void;
}

export const ASKED_DAEMON =
  'the data directory of the daemon to ask (default: ./.holdfast if there is one, else /var/lib/holdfast)';

export function client(command: Command): Command {
  return command
    .addOption(
      new Option(
        '--admin <host>',
        'the control plane to ask, host or host:port (default port: 9194; or HOLDFAST_ADMIN)',
      ).argParser(notEmpty('a host')),
    )
    .addOption(
      new Option('--admin-cert <dir>', 'the folder of the certificate for it (or HOLDFAST_ADMIN_CERT)').argParser(
        notEmpty('a folder'),
      ),
    )
    .addOption(dataDirOption(ASKED_DAEMON))
    .addOption(outputOption());
}

export function scoped(command: Command): Command {
  return command.addOption(namespaceOption()).option('-A, --all-namespaces', 'all namespaces', false);
}

export function namespaceOption(): Option {
  return new Option('-n, --namespace <name>', 'the namespace').default(DEFAULT_NAMESPACE);
}

export function selecting(command: Command): Command {
  return scoped(client(command)).option('-l, --selector <labels>', 'only with these labels: a=b,c!=d,e,!f');
}

/** How new the answer has to be. */
export function reading(command: Command): Command {
  return command
    .option('--stale', 'what the daemon last knew, without asking its store', false)
    .option('--at-least <revision>', 'not before it has this revision, which apply prints; waits 5 s', (value) => {
      if (!/^[1-9]\d{0,17}$/.test(value)) throw new InvalidArgumentError('expected a revision, 1 or more');
      return value;
    });
}

export function dataDirOption(description: string): Option {
  return new Option('--data-dir <dir>', description).argParser(notEmpty('a folder'));
}

function notEmpty(what: string) {
  return (value: string) => {
    if (value === '') throw new InvalidArgumentError(`expected ${what}`);
    return value;
  };
}

export function outputOption(): Option {
  return new Option('-o, --output <format>', 'how to print').choices(['table', 'json', 'yaml']).default('table');
}

export function collect(value: string, former: readonly string[] | undefined): readonly string[] {
  return [...(former ?? []), value];
}

export function given(...args: readonly (string | undefined)[]): readonly string[] {
  return args.filter((arg) => arg !== undefined);
}
