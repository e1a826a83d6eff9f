import { readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import type { CliContext } from '../../src/adapters/cli/context.js';
import type { LocalVerbs } from '../../src/adapters/cli/local-verbs.js';
import { runCli } from '../../src/adapters/cli/program.js';
import { readManifests } from '../../src/adapters/manifest/manifest-files.js';
import { ControlPlaneMetrics } from '../../src/adapters/metrics/control-plane-metrics.js';
import { PrometheusMetrics } from '../../src/adapters/metrics/prometheus-metrics.js';
import { defaults } from '../../src/domain/config/defaults.js';
import { flagOf, settingNames, settings, variableOf } from '../../src/domain/config/model.js';
import { renderSetting } from '../../src/domain/config/render.js';
import { vipRange } from '../../src/domain/dataplane/vip.js';
import { catalogue } from '../../src/domain/instruction/catalogue.js';
import { formatDuration } from '../../src/domain/kernel/duration.js';
import { errorCodes } from '../../src/domain/kernel/errors.js';
import { ipAddress, portNumber } from '../../src/domain/kernel/network.js';
import { type AbsolutePath, makePaths } from '../../src/domain/kernel/paths.js';
import { ZERO_REVISION } from '../../src/domain/log/model.js';
import { ZERO_SEQUENCE } from '../../src/domain/outbox/model.js';
import { preflightChecks } from '../../src/domain/preflight/judge.js';
import type { Resource } from '../../src/domain/resource/model.js';
import { source } from '../../src/domain/resource/model.js';
import { planApply } from '../../src/domain/resource/plan.js';
import { decodeResource } from '../../src/domain/resource/schema.js';
import { ClusterState } from '../../src/domain/resource/state.js';
import type { ListenerTraffic, NodeStatus } from '../../src/ports/driving/operations.js';
import { controlPlaneFigures, controlPlaneFleet, failingStore } from '../support/control-plane-figures.js';

const repository = fileURLToPath(new URL('../..', import.meta.url));
const read = (path: string) => readFileSync(join(repository, path), 'utf8');
const doc = (name: string) => read(`docs/${name}.md`);
const unquoted = (cell: string | undefined) => (cell ?? '').replaceAll('`', '');

/** What stands below the heading, up to the next of its own level or above. */
function section(text: string, heading: string): string {
  const level = heading.indexOf(' ');
  const start = `\n${text}`.indexOf(`\n${heading}\n`);
  expect(start, heading).toBeGreaterThanOrEqual(0);
  const rest = text.slice(start + heading.length);
  const end = rest.search(new RegExp(`\\n#{1,${level}} `));
  return end < 0 ? rest : rest.slice(0, end);
}

/** The rows of all tables whose first column has the given head. */
function rows(text: string, head: string): readonly (readonly string[])[] {
  const found: (readonly string[])[] = [];
  let wanted: boolean | undefined;
  for (const line of text.split('\n')) {
    if (!line.startsWith('|')) {
      wanted = undefined;
      continue;
    }
    const cells = line
      .slice(1, -1)
      .split(/(?<!\\)\|/)
      .map((cell) => cell.trim());
    if (wanted === undefined) wanted = cells[0] === head;
    else if (wanted && !/^-+$/.test(cells[0] ?? '')) found.push(cells);
  }
  return found;
}

describe('docs/preflight.md', () => {
  test('has every check with what it wants, and no other', () => {
    const documented = rows(doc('preflight'), 'check').map(([name, wants]) => [unquoted(name), wants]);
    expect(documented).toEqual(preflightChecks.map(({ name, wants }) => [name, wants]));
  });
});

describe('docs/configuration.md', () => {
  const documented = rows(doc('configuration'), 'key');
  const fallback = defaults('dev');
  const when = { live: /SIGHUP/, restart: /restart|once/, minting: /identity/ };

  test('has every setting with variable, flag and default, and no other', () => {
    const wanted = settingNames.map((name) => [
      settings[name].path,
      variableOf(name),
      flagOf(name),
      renderSetting(name, fallback),
    ]);
    expect(documented.map((row) => row.slice(0, 4).map(unquoted))).toEqual(wanted);
  });

  test.each(settingNames)('says when %s applies', (name) => {
    const row = documented.find(([key]) => unquoted(key) === settings[name].path);
    expect(row?.[4]).toMatch(when[settings[name].applies]);
  });

  test.each(settingNames)('says which daemons read %s', (name) => {
    const row = documented.find(([key]) => unquoted(key) === settings[name].path);
    expect(row?.[5]).toBe(settings[name].of.join(', '));
  });
});

describe('docs/cli.md', async () => {
  const text = doc('cli');
  const help = async (...args: readonly string[]) => {
    const parts: string[] = [];
    const console = {
      out: (part: string) => void parts.push(part),
      err: () => {},
      write: async () => {},
      colour: false,
      interactive: false,
    };
    const context: CliContext = { console, env: {}, stdin: (async function* () {})(), signal: new AbortController().signal };
    const never = () => Promise.reject(new Error('help runs nothing'));
    const daemons = { dev: never, agent: never, server: never, acceptRollback: never, register: never };
    const local: LocalVerbs = {
      ...daemons,
      adopt: never,
      install: never,
      preflight: never,
      restore: never,
      uninstall: never,
      verifyAudit: never,
    };
    await runCli([...args, '--help'], context, '0', local);
    return parts.join('');
  };
  const verbs = [...(await help()).replace(/[\s\S]*Commands:/, '').matchAll(/^ {2}(\w+)/gm)].map(([, verb = '']) => verb);
  const options = (helpText: string) =>
    [...helpText.matchAll(/^ {2}(?:-\w, )?(--[a-z-]+)/gm)].flatMap(([, option = '']) => (option === '--help' ? [] : [option]));
  const shared = ['## Whom a verb asks', '## Output', '## Selecting'].map((heading) => section(text, heading)).join('\n');
  const own = (verb: string) => section(text, `## ${verb}`);

  test('has every verb, and no other', () => {
    const listed = rows(text, 'verb').map(([cell]) => /`(\w+)`/.exec(cell ?? '')?.[1]);
    expect(listed.toSorted()).toEqual(verbs.toSorted());
  });

  const below = async (verb: string) => [...(await help(verb)).matchAll(/^ {2}(\w+) \[options\]/gm)].map(([, name = '']) => name);
  const optionsBelow = async (verb: string) =>
    (await Promise.all((await below(verb)).map(async (name) => options(await help(verb, name))))).flat();
  const groups: readonly string[] = ['token', 'cert', 'ca'];

  test.each(groups)('has every verb below %s, with its options', async (verb) => {
    const listed = rows(own(verb), `verb of ${verb}`).map(([cell]) => cell?.match(/^`\w+ (\w+)/)?.[1]);
    expect(listed).toEqual(await below(verb));
    const known = await optionsBelow(verb);
    expect(known.filter((option) => !`${own(verb)}${shared}`.includes(option))).toEqual([]);
  });

  test.each(verbs.filter((verb) => verb !== 'help'))('has every option of %s, and no other', async (verb) => {
    const known = groups.includes(verb) ? await optionsBelow(verb) : options(await help(verb));
    // `diff` has the options of `apply`.
    const where = verb === 'diff' ? own('apply') + own('diff') : own(verb);
    expect(known.filter((option) => !`${where}${shared}`.includes(`${option}`))).toEqual([]);
    const documented = rows(own(verb), 'option').flatMap(([cell]) => /--[a-z-]+/.exec(cell ?? '') ?? []);
    expect(documented.filter((option) => !known.includes(option))).toEqual([]);
  });
});

describe('docs/testing.md', () => {
  test('says of every instruction which test shows it', () => {
    const documented = rows(doc('testing'), 'instruction');
    expect(documented.map(([type]) => unquoted(type))).toEqual(catalogue.map(({ type }) => type));
    for (const path of documented.flatMap(([, paths]) => unquoted(paths).split(', ')))
      expect(statSync(join(repository, path)).isFile(), path).toBe(true);
  });
});

describe('docs/instructions.md', () => {
  const text = doc('instructions');

  test('has every type, whether it is built, and how it is queued', () => {
    const wanted = catalogue.map(({ type, read: reader, scheduling: { lanes, slot, deadlineMs, repeat } }) => [
      type,
      reader === undefined ? 'not built' : 'built',
      lanes.join(', ') || 'none',
      slot,
      deadlineMs === undefined ? 'none' : formatDuration(deadlineMs),
      repeat,
    ]);
    expect(rows(text, 'type').map((row) => row.slice(0, 6).map(unquoted))).toEqual(wanted);
  });

  test('has every word that the text of an error begins with, and no other', () => {
    const sources = ['src/domain/instruction', 'src/app/instruction'].flatMap((folder) =>
      readdirSync(join(repository, folder))
        .filter((name) => name.endsWith('.ts'))
        .map((name) => read(`${folder}/${name}`)),
    );
    const said = /[`']([A-Z]{3,}(?:_[A-Z]+)*)(?:: |\$\{which\}: )|(JOURNAL_UNAVAILABLE)\}: /g;
    const words = sources.flatMap((source) => [...source.matchAll(said)].map(([, word, constant]) => word ?? constant));
    const documented = rows(text, 'answer').map(([word]) => unquoted(word));
    expect(documented).toEqual([...new Set(words)].sort());
  });
});

test('docs/fleet.md has every file of the data directories', () => {
  const {
    dataDir,
    machineConfig: _,
    removal: __,
    ...paths
  } = makePaths({ root: '/' as AbsolutePath, dataDir: '/d' as AbsolutePath });
  const files = Object.values(paths).map((path) => path.slice(dataDir.length + 1));
  const documented = rows(doc('fleet'), 'file').flatMap(([cell]) =>
    [...(cell ?? '').matchAll(/`([^`]+)`/g)].map(([, file]) => file),
  );
  expect(files.filter((file) => !documented.includes(file))).toEqual([]);
});

test('docs/troubleshooting.md has every error code, and no other', () => {
  const documented = rows(doc('troubleshooting'), 'code').map(([code]) => unquoted(code));
  expect(documented).toEqual(Object.keys(errorCodes).sort());
});

const vip = {
  ...{ address: 'a', held: true, since: 0, leftMs: 1, generation: 1n, alone: false },
  counts: { taken: 1, removedByOthers: 0, dropped: { gap: 0, silence: 0, conflict: 0, expired: 0 } },
};

test('docs/metrics.md has every metric with its type and labels, and no other', async () => {
  const none = { runs: 0, seconds: 0 };
  const outbox = { depth: 0, capacity: 1, dropped: 0n, nextSequence: ZERO_SEQUENCE };
  const metrics = new PrometheusMetrics({
    status: () => status,
    listeners: () => [traffic, { ...traffic, protocol: 'udp' as const }],
    dns: () => ({
      ...{
        queries: [{ type: 'A', rcode: 'NOERROR', count: 3 }],
        cacheHits: 0,
        handedUp: 0,
        droppedQuestions: 0,
        droppedAnswers: 0,
      },
      ...{ truncated: 0, names: 0, cached: 0 },
    }),
    checks: () => ({ targets: 0, succeeded: 0, failed: 0 }),
    outbox: () => outbox,
    reconciles: () => none,
    kernelPath: () => ({ services: 1, slots: 1, commits: 1, seconds: 1, repairs: 1, draining: 1 }),
    link: () => ({ up: true, streams: 1, viewFresh: true, waiting: 0, running: 0, unconfirmed: 0, ended: { done: 1 } }),
    apiBalancer: () => ({ state: 'serving', port: 6_446, servers: [], reloads: 1, changes: 1 }),
    overlay: () => ({ link: 'kernel', publicKey: 'k', address: 'a', mtu: 1, peers: [overlayPeer] }),
    vip: () => vip,
  });
  const store = (await failingStore()).figures();
  const controlPlane = new ControlPlaneMetrics({
    status: () => ({ ...status, fleet: controlPlaneFleet() }),
    figures: controlPlaneFigures,
    stores: () => ({ control: store, log: store }),
    outbox: () => outbox,
    now: () => 0,
  });
  const text = `${(await metrics.render()).text}${(await controlPlane.render()).text}`;
  const rendered = [...text.matchAll(/^# TYPE (holdfast_\w+) (\w+)$/gm)].map(([, name = '', type]) => {
    const sample = new RegExp(`^${name}(?:_sum)?\\{(.*)\\} `, 'm').exec(text)?.[1] ?? '';
    const labels = [...sample.matchAll(/(\w+)=/g)].map(([, label]) => label);
    return [name, type, labels.filter((label) => !['namespace', 'service', 'port'].includes(String(label))).join(', ')];
  });
  const documented = rows(doc('metrics'), 'metric').map(([name, type, labels]) => [unquoted(name), type, unquoted(labels)]);
  const once = new Map(rendered.map((row) => [row[0], row]));
  expect(documented.toSorted()).toEqual([...once.values()].toSorted());
});

const status: NodeStatus = {
  version: '0',
  mode: 'dev',
  nodeId: 'n',
  hostname: 'n',
  dataDir: '/',
  startedAt: 0,
  ready: true,
  subsystems: [],
  log: { revision: ZERO_REVISION, logId: '', objects: 0, ageMs: 0 },
  dataPlane: { threads: 1, listeners: 1, listenerBudget: 1, failedListeners: 0, activeConnections: 0, connectionLimit: 1 },
  metricsListen: '',
  problems: [],
};

const overlayPeer = {
  ...{ publicKey: 'k', address: 'a', endpoint: 'e', state: 'up' as const, handshakeAgeMs: 1 },
  ...{ receivedBytes: 1, sentBytes: 1, ranges: [] },
};

const counts = { active: 0, completed: 0, failed: 0, refused: 0, reset: 0, drained: 0, bytesIn: 0, bytesOut: 0, dialFailures: 0 };
const traffic: ListenerTraffic = {
  id: 'default/hello/http' as ListenerTraffic['id'],
  ...counts,
  ...{ limited: 0, evicted: 0, dropped: 0, protocol: 'tcp', declaredEndpoints: 1 },
  times: { dial: { bounds: [], counts: [0], sum: 0 }, connection: { bounds: [], counts: [0], sum: 0 } },
  endpoints: [
    { address: known(ipAddress('127.0.0.1')), port: known(portNumber(1)), active: 0, total: 0, draining: false, ejected: false },
  ],
};

function known<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('a constant of the test is invalid');
  return value;
}

describe('docs/resources.md', () => {
  const text = doc('resources');
  const endpoint = { name: 'a', address: '127.0.0.1', port: 1, weight: 1, node: 'n' };
  const byName = { name: 'b', address: '127.0.0.1', ports: { http: 2 }, weight: 1, node: 'n' };
  const metadata = { name: 'a', namespace: 'default', labels: { tier: 'web' } };
  /** Of which a service has one. */
  const checks = [
    { http: { path: '/', port: 1, host: 'h', status: 200 } },
    { tcp: { port: 1 } },
    { grpc: { service: 's', port: 1 } },
  ];
  const everything: Readonly<Record<'Service' | 'Endpoints', object>> = {
    Service: {
      ports: [{ name: 'http', port: 80, targetPort: 1, protocol: 'tcp' }],
      vip: '127.192.0.9',
      balance: { algorithm: 'random', locality: 'any' },
      affinity: { clientIP: { timeout: '3h' } },
      limits: { connections: 1 },
      proxyProtocol: { accept: true, send: 'v2' },
      idleTimeout: '1m',
      health: { ...checks[0], interval: '10s', timeout: '2s', rise: 2, fall: 3 },
      drain: { timeout: '30s' },
      endpoints: [endpoint, byName],
    },
    Endpoints: { service: 'a', endpoints: [{ ...endpoint, ready: true }, byName] },
  };
  const dictionaries = ['metadata.labels', 'spec.endpoints[].ports'];

  /** Every key that the schema accepts: an unknown one is answered by those that stand in its place. */
  function accepted(document: object): readonly string[] {
    const keys = new Set<string>();
    const walk = (value: unknown, path: string) => {
      if (Array.isArray(value)) for (const element of value) walk(element, `${path}[]`);
      else if (typeof value === 'object' && value !== null && !dictionaries.includes(path)) {
        for (const key of keysOf(document, value)) {
          const below = path === '' ? key : `${path}.${key}`;
          const member: unknown = Reflect.get(value, key);
          if (dictionaries.includes(below)) keys.add(`${below}.*`);
          else if (typeof member !== 'object' || Array.isArray(member)) keys.add(below);
          walk(member, below);
        }
      }
    };
    walk(document, '');
    return [...keys].sort();
  }

  function keysOf(document: object, mapping: object): readonly string[] {
    Reflect.set(mapping, 'qqqqqqqqqqqq', 1);
    const result = decodeResource(document);
    Reflect.deleteProperty(mapping, 'qqqqqqqqqqqq');
    const messages = 'problems' in result ? result.problems.map(({ message }) => message) : [];
    return /the keys here are (.*)$/.exec(messages.join('\n'))?.[1]?.split(', ') ?? [];
  }

  test.each(['Service', 'Endpoints'] as const)('has every key of %s, and no other', (kind) => {
    const specs = kind === 'Service' ? checks.map((health) => ({ ...everything.Service, health })) : [everything[kind]];
    const documents = [everything[kind], ...specs].map((spec) =>
      structuredClone({ apiVersion: 'holdfast/v1', kind, metadata, spec }),
    );
    for (const document of documents) expect(decodeResource(document)).toHaveProperty('resource');
    const documented = ['## Both kinds', `## ${kind}`].flatMap((heading) => rows(section(text, heading), 'key'));
    // A check that one document lacks has its own keys in another.
    const keys = [...new Set(documents.flatMap((document) => accepted(document)))];
    const leaves = keys.filter((key) => !keys.some((other) => other.startsWith(`${key}.`)));
    expect(documented.map(([key]) => unquoted(key)).sort()).toEqual(leaves.sort());
  });

  test('names only planned keys as planned', () => {
    const planned = /Planned and refused: ([\s\S]*?) in `spec`/.exec(text)?.[1] ?? '';
    const keys = [...planned.matchAll(/`(\w+)`/g)].map(([, key = '']) => key);
    expect(keys.length).toBeGreaterThan(0);
    for (const key of keys) {
      const result = decodeResource({
        apiVersion: 'holdfast/v1',
        kind: 'Service',
        metadata,
        spec: { ...everything.Service, [key]: 1 },
      });
      expect(result).toEqual({ problems: [{ path: `spec.${key}`, message: expect.stringContaining('not built yet') }] });
    }
  });
});

describe('examples', () => {
  // Units of systemd are no manifests.
  const folders = readdirSync(join(repository, 'examples')).filter(
    (name) => statSync(join(repository, 'examples', name)).isDirectory() && name !== 'systemd',
  );

  test.each(folders)('%s can be applied', async (folder) => {
    const signal = new AbortController().signal;
    const { documents } = await readManifests([join(repository, 'examples', folder)], (async function* () {})(), { signal });
    const resources = documents.flatMap(({ value }): readonly Resource[] => {
      const decoded = decodeResource(value);
      expect(decoded).toHaveProperty('resource');
      return 'resource' in decoded ? [decoded.resource] : [];
    });
    expect(resources.length).toBeGreaterThan(0);
    const request = { resources, source: source(folder), prune: false };
    const context = { state: new ClusterState(), range: vipRange('127.192.0.0/16'), now: 0 };
    expect(planApply(request, context)).not.toHaveProperty('problems');
  });
});

describe('links', () => {
  const files = ['.', 'docs'].flatMap((folder) =>
    readdirSync(join(repository, folder))
      .filter((name) => name.endsWith('.md'))
      .map((name) => join(repository, folder, name)),
  );

  /** As GitHub makes them. */
  const anchors = (file: string) =>
    [...readFileSync(file, 'utf8').matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
      heading
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    );

  test.each(files.map((file) => [relative(repository, file), file] as const))('of %s lead somewhere', (_, file) => {
    const targets = [...readFileSync(file, 'utf8').matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target);
    const broken = targets.filter((target) => {
      if (/^https?:/.test(target)) return false;
      const [path = '', anchor] = target.split('#', 2);
      const leadsTo = path === '' ? file : resolve(dirname(file), path);
      if (statSync(leadsTo, { throwIfNoEntry: false }) === undefined) return true;
      return anchor !== undefined && !anchors(leadsTo).includes(anchor);
    });
    expect(broken).toEqual([]);
  });
});

test('CHANGELOG.md has the version of package.json', () => {
  const { version } = JSON.parse(read('package.json'));
  expect(read('CHANGELOG.md')).toContain(`\n## [${version}] - `);
});
