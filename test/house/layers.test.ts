import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const repository = fileURLToPath(new URL('../..', import.meta.url));
const layers = ['domain', 'ports', 'app', 'adapters', 'composition'];
/** All that says what a layer may do. */
const rules = [
  'package.json',
  '.gitignore',
  'biome.json',
  'tsconfig.base.json',
  'scripts/lint',
  ...layers.map((layer) => `src/${layer}/tsconfig.json`),
];

interface Probe {
  readonly name: string;
  /** In `src`; its layer is the first folder. */
  readonly file: string;
  readonly code: string;
}

const OTHER_LAYER = /is not under 'rootDir'/;
const PACKAGE = /The domain imports itself/;
const ASYNC = /The domain is synchronous: no async functions/;
const AWAIT = /The domain is synchronous: nothing to await/;
const RANDOM = /Randomness is an argument of the domain/;
const global = (name: string) => new RegExp(`Do not use the global variable ${name}`);
const unknown = (name: string) => new RegExp(`Cannot find name '${name}'`);

const importing = (layer: string, from: string): Probe => ({
  name: `${layer} imports ${from}`,
  file: `${layer}/probe/${from}.ts`,
  code: `import { ${from} } from '../../${from}/home/home.js';\nexport const probe = ${from};\n`,
});
const inDomain = (name: string, code: string): Probe => ({
  name,
  file: `domain/probe/${name.replaceAll(/[^a-zA-Z]+/g, '-').toLowerCase()}.ts`,
  code: `${code}\n`,
});

const breaches: readonly (Probe & { readonly says: readonly RegExp[] })[] = [
  ...['ports', 'app', 'adapters', 'composition'].map((from) => ({
    ...importing('domain', from),
    says: [OTHER_LAYER, /The domain imports no other layer/],
  })),
  ...['app', 'adapters', 'composition'].map((from) => ({ ...importing('ports', from), says: [OTHER_LAYER] })),
  ...['adapters', 'composition'].map((from) => ({ ...importing('app', from), says: [OTHER_LAYER, /know no adapter/] })),
  ...['app', 'composition'].map((from) => ({ ...importing('adapters', from), says: [OTHER_LAYER] })),
  {
    name: 'ports import a package',
    file: 'ports/probe/package.ts',
    code: "import type { Logger } from 'pino';\nexport type Probe = Logger;\n",
    says: [/import no package/],
  },
  {
    name: 'app imports Node',
    file: 'app/probe/node.ts',
    code: "import { readFileSync } from 'node:fs';\nexport const probe = readFileSync;\n",
    says: [/import no package/],
  },
  {
    ...inDomain('a type of another layer', "export type { Home } from '../../ports/home/types.js';"),
    says: [OTHER_LAYER, /imports no other layer/],
  },
  { ...inDomain('a package', "import { pino } from 'pino';\nexport const probe: unknown = pino;"), says: [PACKAGE] },
  { ...inDomain('the types of a package', "import type { Logger } from 'pino';\nexport type Probe = Logger;"), says: [PACKAGE] },
  { ...inDomain('a package when it runs', "export const probe: unknown = import('pino');"), says: [PACKAGE] },
  { ...inDomain('zod outside of a schema', "import { z } from 'zod';\nexport const probe = z.string();"), says: [PACKAGE] },
  {
    ...inDomain('Node', "import { readFileSync } from 'node:fs';\nexport const probe: unknown = readFileSync;"),
    says: [PACKAGE],
  },
  {
    name: 'another package in a schema',
    file: 'domain/probe/schema.ts',
    code: "import { parse } from 'yaml';\nexport const probe: unknown = parse;\n",
    says: [/The domain imports itself and zod/],
  },
  ...['setTimeout', 'setInterval', 'setImmediate', 'queueMicrotask'].map((name) => ({
    ...inDomain(name, `export const probe: unknown = ${name}(() => {}, 1);`),
    says: [global(name), unknown(name)],
  })),
  { ...inDomain('Date.now', 'export const probe = Date.now();'), says: [global('Date')] },
  { ...inDomain('new Date', 'export const probe = new Date().getTime();'), says: [global('Date')] },
  { ...inDomain('Date as a type', 'export type Probe = Date;'), says: [global('Date')] },
  { ...inDomain('Date by globalThis', 'export const probe = globalThis.Date.now();'), says: [global('globalThis')] },
  {
    ...inDomain('performance', 'export const probe: unknown = performance.now();'),
    says: [global('performance'), unknown('performance')],
  },
  {
    ...inDomain('process.env', 'export const probe: unknown = process.env.HOME;'),
    says: [global('process'), unknown('process')],
  },
  { ...inDomain('console', "console.log('probe');\nexport const probe = 1;"), says: [global('console'), unknown('console')] },
  { ...inDomain('Promise', 'export const probe = Promise.resolve(1);'), says: [global('Promise')] },
  { ...inDomain('Promise as a type', 'export type Probe = Promise<void>;'), says: [global('Promise')] },
  { ...inDomain('an async function', 'export async function probe() {}'), says: [ASYNC] },
  { ...inDomain('an async arrow', 'export const probe = async () => 1;'), says: [ASYNC] },
  { ...inDomain('an async arrow with an argument', 'export const probe = async(x: number) => x;'), says: [ASYNC] },
  { ...inDomain('an async function expression', 'export const probe = [async function named() {}];'), says: [ASYNC] },
  { ...inDomain('an async method', 'export class Probe {\n  async method() {}\n}'), says: [ASYNC] },
  { ...inDomain('an async static method', 'export class Probe {\n  private static async method() {}\n}'), says: [ASYNC] },
  { ...inDomain('an async generator', 'export class Probe {\n  async *method() {}\n}'), says: [ASYNC] },
  { ...inDomain('an async member', 'export const probe = { async method() {} };'), says: [ASYNC] },
  { ...inDomain('await', 'export const probe = await 1;'), says: [AWAIT] },
  { ...inDomain('for await', 'for await (const probe of [1]) void probe;\nexport const probe = 1;'), says: [AWAIT] },
  { ...inDomain('Math.random', 'export const probe = Math.random();'), says: [RANDOM] },
  { ...inDomain('Math.random by its text', "export const probe = Math['random']();"), says: [RANDOM] },
  { ...inDomain('Math.random taken out', 'export const { random } = Math;'), says: [RANDOM] },
];

const innocents: readonly Probe[] = [
  ...[
    ['ports', 'domain'],
    ['app', 'domain'],
    ['app', 'ports'],
    ['adapters', 'domain'],
    ['adapters', 'ports'],
    ['composition', 'domain'],
    ['composition', 'ports'],
    ['composition', 'app'],
    ['composition', 'adapters'],
  ].map(([layer = '', from = '']) => importing(layer, from)),
  {
    name: 'a schema imports zod',
    file: 'domain/innocent/schema.ts',
    code: "import { z } from 'zod';\nimport { domain } from '../home/home.js';\nexport const probe = z.literal(domain);\n",
  },
  {
    name: 'words that only look like breaches',
    file: 'domain/innocent/model.ts',
    code: [
      "import { domain } from '../home/home.js';",
      '// async function, await, Math.random(), Date.now()',
      'interface Words {',
      '  readonly async: boolean;',
      '  readonly await: string;',
      '  readonly date: number;',
      '}',
      'export class Innocent {',
      '  async(promise: number): number {',
      '    return Math.max(promise, Math.floor(1.5));',
      '  }',
      '}',
      'export const asyncWords = (asyncWord: number): Words => ({ async: asyncWord > 0, await: domain, date: 1 });',
      'for (const awaited of [1]) asyncWords(awaited);',
      '',
    ].join('\n'),
  },
  {
    name: 'the composition imports what it likes',
    file: 'composition/innocent/packages.ts',
    code: "import { readFileSync } from 'node:fs';\nimport { pino } from 'pino';\nexport const probe: readonly unknown[] = [readFileSync, pino, Date.now(), Math.random()];\n",
  },
  {
    name: 'an adapter imports packages and waits',
    file: 'adapters/innocent/packages.ts',
    code: "import { setTimeout } from 'node:timers/promises';\nexport async function probe(): Promise<void> {\n  await setTimeout(1);\n}\n",
  },
];

/** What the compiler and the linter say about each file. */
type Complaints = ReadonlyMap<string, readonly string[]>;

const trees: string[] = [];
let complaints: Complaints = new Map();

// A package brings the types of Node into its whole program, and with them the timers: breaches of that kind have a tree of their own.
beforeAll(async () => {
  const probes: readonly Probe[] = [...breaches, ...innocents];
  const bringsNode = ({ file, code }: Probe) => file.startsWith('domain/') && /'(pino|yaml|node:fs)'/.test(code);
  const both = await Promise.all([
    complaintsAbout(probes.filter((probe) => bringsNode(probe))),
    complaintsAbout(probes.filter((probe) => !bringsNode(probe))),
  ]);
  complaints = new Map(both.flatMap((found) => [...found]));
}, 60_000);

afterAll(async () => {
  for (const tree of trees) await rm(tree, { recursive: true, force: true });
});

async function complaintsAbout(probes: readonly Probe[]): Promise<Complaints> {
  const root = await realpath(await mkdtemp(join(tmpdir(), 'layers-')));
  trees.push(root);
  for (const rule of rules) await cp(join(repository, rule), join(root, rule), { recursive: true });
  await symlink(join(repository, 'node_modules'), join(root, 'node_modules'));
  const homes = layers.map((layer) => ({
    file: `${layer}/home/home.ts`,
    code: `export const ${layer} = '${layer}';\nexport type Home = typeof ${layer};\n`,
  }));
  // The compiler names a file that is out of place once, however many import it.
  const types = { file: 'ports/home/types.ts', code: 'export type Home = string;\n' };
  for (const { file, code } of [...homes, types, ...probes]) {
    const path = join(root, 'src', file);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, code);
  }
  const [compiled, linted] = await Promise.all([
    run(root, 'tsc', ['-b', '--pretty', 'false', ...layers.map((layer) => `src/${layer}`)]),
    run(root, 'biome', ['lint', '--reporter=github', '--max-diagnostics=none', '--diagnostic-level=error', 'src']),
  ]);
  const found = new Map<string, string[]>();
  const lines = [
    ...compiled.matchAll(/^(\S+)\(\d+,\d+\): error (.*)$/gm),
    ...linted.matchAll(/^::error .*?file=([^,]*),[^:]*::(.*)$/gm),
  ];
  for (const [, path = '', message = ''] of lines) {
    const file = relative(join(root, 'src'), resolve(root, path));
    found.set(file, [...(found.get(file) ?? []), message]);
  }
  return found;
}

/** Both tools end with an error here: there are breaches. */
function run(cwd: string, tool: string, args: readonly string[]): Promise<string> {
  const program = join(repository, 'node_modules/.bin', tool);
  return new Promise((done) => {
    execFile(program, args, { cwd, maxBuffer: 64 * 1024 * 1024 }, (_, stdout, stderr) => done(`${stdout}\n${stderr}`));
  });
}

describe('a breach fails', () => {
  test.each(breaches)('$name', ({ file, says }) => {
    for (const expected of says) expect(complaints.get(file)).toContainEqual(expect.stringMatching(expected));
  });
});

describe('what is allowed passes', () => {
  test.each(innocents)('$name', ({ file }) => {
    expect(complaints.get(file)).toBeUndefined();
  });
});
