import { hash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { FilePairStore } from '../adapters/certificate/file-pair-store.js';
import { readPairFacts } from '../adapters/certificate/pair-facts.js';
import { isConfirmed } from '../adapters/cli/confirm.js';
import { type CliContext, type ExitCode, exitCodes } from '../adapters/cli/context.js';
import type { AdoptOptions } from '../adapters/cli/local-verbs.js';
import { structured } from '../adapters/cli/output.js';
import { SystemClock } from '../adapters/clock/system-clock.js';
import { YamlConfigFile } from '../adapters/config/yaml-config-file.js';
import { type Addon, loadAddon } from '../adapters/dataplane/addon.js';
import { ensureFolder } from '../adapters/files/durable-file.js';
import { DurableMachineFiles } from '../adapters/files/durable-machine-files.js';
import { errnoOf } from '../adapters/files/errno.js';
import { disableLine, enabledOlderUnits, findOlderAgent } from '../adapters/node/older-agent.js';
import { type Adoption, surveyAdoption, adopt as takeOver } from '../app/adoption/adopt-node.js';
import { giveBack, type Return, surveyReturn } from '../app/adoption/give-back.js';
import { type AdoptionParts, readRecord } from '../app/adoption/survey.js';
import { LEGACY_CONFIG, LEGACY_LOCK } from '../domain/adoption/model.js';
import { AgentError } from '../domain/kernel/errors.js';
import { formatInstant } from '../domain/kernel/instant.js';
import { formatHostPort } from '../domain/kernel/network.js';
import { type AbsolutePath, absolutePath, type Paths, under } from '../domain/kernel/paths.js';
import type { CallOptions } from '../ports/call-options.js';
import { checkDataDir, holdDataDir, makeDataDir } from './data-dir.js';
import type { Facts } from './facts.js';
import { flatPair, pathsOf } from './paths.js';

/** Takes over the node of an older agent of this machine, or gives it back. Neither agent runs meanwhile. */
export async function adopt(context: CliContext, options: AdoptOptions): Promise<ExitCode> {
  const paths = pathsOf(options, context.env, '/var/lib/holdfast');
  const root = absolutePath(resolve(options.root ?? '/')) ?? paths.dataDir;
  await checkDataDir(paths);
  const addon = loadAddon();
  // Who runs on it is our own agent: that is told before its lock looks like somebody else's.
  const isThere = existsSync(paths.dataDir);
  if (isThere) holdDataDir(addon, paths);
  await refuseOlder(root, options.undo);
  const parts = partsOf(paths, root);
  const prepare = async () => {
    if (!isThere) {
      await makeDataDir(paths);
      holdDataDir(addon, paths);
    }
    await holdLegacyLock(addon, root);
  };
  return options.undo ? undo(context, options, parts, prepare) : take(context, options, parts, prepare);
}

/**
 * Of a node that was adopted: it holds the older agent's lock until this process ends (the descriptor), and does not start on what is half done.
 * @throws AgentError `adoption.unfinished`, `adoption.refused`, `adoption.file_failed`, `agent.other_agent`
 */
export async function holdAdopted(
  { addon, paths }: Facts,
  root: AbsolutePath,
  options: CallOptions,
): Promise<number | undefined> {
  const record = await readRecord({ files: new DurableMachineFiles(), places: placesOf(paths, root) }, options);
  if (record === undefined) return undefined;
  if (record.state !== 'taken') {
    const command = record.state === 'taking' ? '`holdfast adopt` or `holdfast adopt --undo`' : '`holdfast adopt --undo`';
    throw new AgentError('adoption.unfinished', { problem: `an adoption was left half done: ${command}` });
  }
  return holdLegacyLock(addon, root);
}

async function take(
  { console, ...context }: CliContext,
  options: AdoptOptions,
  parts: AdoptionParts,
  prepare: () => Promise<void>,
): Promise<ExitCode> {
  const call = { signal: context.signal };
  const adoption = await surveyAdoption(parts, call);
  if (!options.dryRun && !adoption.isDone) {
    if (!options.yes && !(await isConfirmed({ console, ...context }, `adopt node ${adoption.record.nid}`, CONSEQUENCE))) {
      return exitCodes.failed;
    }
    await prepare();
    await takeOver(parts, adoption, call);
  }
  if (options.output === 'table') console.out(describeAdoption(adoption, options));
  else console.out(structured(options.output, { ...adoptionFacts(adoption), dryRun: options.dryRun }));
  return exitCodes.done;
}

const CONSEQUENCE = 'its configuration and certificates are copied; the older agent must not start again until `adopt --undo`.';

async function undo(
  { console, ...context }: CliContext,
  options: AdoptOptions,
  parts: AdoptionParts,
  prepare: () => Promise<void>,
): Promise<ExitCode> {
  const call = { signal: context.signal };
  const found = await surveyReturn(parts, call);
  if (found === undefined) {
    console.out(options.output === 'table' ? 'nothing was adopted\n' : structured(options.output, { undone: false }));
    return exitCodes.done;
  }
  let kept: readonly AbsolutePath[] = [];
  if (!options.dryRun) {
    const what = `give node ${found.record.nid} back`;
    const consequence = 'what was adopted is removed from the data directory.';
    if (!options.yes && !(await isConfirmed({ console, ...context }, what, consequence))) return exitCodes.failed;
    await prepare();
    kept = await giveBack(parts, found, call);
  }
  for (const warning of found.warnings) console.err(`warning: ${warning}\n`);
  for (const path of kept) console.err(`warning: ${path} was changed since and stays\n`);
  if (options.output === 'table') console.out(describeReturn(found, options));
  else console.out(structured(options.output, { ...returnFacts(found), kept, dryRun: options.dryRun }));
  return exitCodes.done;
}

function adoptionFacts({ record, isDone, certificateUntil }: Adoption) {
  const { nid, aid, server, serial, source, made } = record;
  return {
    adopted: !isDone,
    nid,
    aid,
    server: formatHostPort(server),
    serial,
    certificateUntil: formatInstant(certificateUntil),
    reads: Object.values(source).flatMap((file) => file?.path ?? []),
    makes: Object.values(made).flatMap((file) => file?.path ?? []),
  };
}

function describeAdoption(adoption: Adoption, { dryRun, root, dataDir }: AdoptOptions): string {
  const { nid, aid, server, certificateUntil, reads, makes } = adoptionFacts(adoption);
  const where = [root && ` --root ${root}`, dataDir && ` --data-dir ${dataDir}`].join('');
  const said = `node ${nid} of ${aid}`;
  if (adoption.isDone) return `${said} is adopted already; start the agent with: holdfast agent${where}\n`;
  const lines = [
    `  control      ${server}`,
    `  certificate  valid until ${certificateUntil}`,
    ...reads.map((path) => `  reads        ${path}`),
    ...makes.map((path) => `  makes        ${path}`),
  ];
  const head = dryRun ? `would adopt ${said}` : `adopted ${said}; start the agent with: holdfast agent${where}`;
  return `${[head, ...lines].join('\n')}\n`;
}

function returnFacts({ record, plan, warnings }: Return) {
  const { certificate, privateKey, ca } = record.source;
  const writes = plan.pair === 'renewed' ? [ca.path, privateKey.path, certificate.path] : [];
  return { undone: true, nid: record.nid, pair: plan.pair, writes, warnings };
}

function describeReturn(found: Return, { dryRun }: AdoptOptions): string {
  const { nid, writes } = returnFacts(found);
  const head = dryRun ? `would give node ${nid} back` : `gave node ${nid} back; the older agent can be started`;
  return `${[head, ...writes.map((path) => `  writes  ${path}`)].join('\n')}\n`;
}

/** @throws AgentError `adoption.older_agent` */
async function refuseOlder(root: AbsolutePath, isUndo: boolean): Promise<void> {
  const running = await findOlderAgent(root);
  if (running !== undefined) throw olderAgent(running.what, running.stop);
  // An undo is for its next start.
  const units = isUndo ? [] : await enabledOlderUnits(root);
  if (units.length > 0) throw olderAgent(`${units.join(' ')} would start with the machine`, disableLine(units));
}

function olderAgent(what: string, line: string): AgentError {
  return new AgentError('adoption.older_agent', { problem: `${what}: \`${line}\`` });
}

/** @throws AgentError `agent.other_agent`, `adoption.file_failed` */
async function holdLegacyLock(addon: Addon, root: AbsolutePath): Promise<number> {
  const lock = under(root, LEGACY_LOCK);
  try {
    await ensureFolder(dirname(lock));
    return addon.lockFile(lock);
  } catch (cause) {
    const code = errnoOf(cause);
    if (code === 'EWOULDBLOCK')
      throw new AgentError('agent.other_agent', { problem: `another process holds ${lock}` }, { cause });
    throw new AgentError('adoption.file_failed', { problem: `${lock} cannot be locked: ${code ?? String(cause)}` }, { cause });
  }
}

function partsOf(paths: Paths, root: AbsolutePath): AdoptionParts {
  const places = placesOf(paths, root);
  return {
    places,
    files: new DurableMachineFiles(),
    pairs: new FilePairStore({ folder: paths.certs, flat: flatPair(paths) }),
    legacy: new YamlConfigFile(places.legacyConfig, { required: false }),
    readPair: readPairFacts,
    sha256: (text) => hash('sha256', text, 'hex'),
    clock: new SystemClock(),
  };
}

function placesOf(paths: Paths, root: AbsolutePath): AdoptionParts['places'] {
  return {
    legacyConfig: under(root, LEGACY_CONFIG),
    under: (path) => under(root, path),
    record: paths.adoption,
    config: paths.machineConfig,
    configFolder: under(root, '/etc/holdfast' as AbsolutePath),
    hidingConfig: paths.config,
    enrolment: paths.enrolment,
    registrationRoot: paths.registrationRoot,
  };
}
