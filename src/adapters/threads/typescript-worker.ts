import { Worker } from 'node:worker_threads';

/**
 * Built code runs `x.js`. Tests run the sources, where Node strips the types but does not know that `./y.js` is `./y.ts`: there, and
 * only there, a resolver is loaded into the worker first.
 */
const RESOLVER = `
  import { registerHooks } from 'node:module';
  registerHooks({ resolve: (name, context, next) => {
    try { return next(name, context); }
    catch (error) { if (/^\\.{1,2}\\/.*\\.js$/.test(name)) return next(name.slice(0, -2) + 'ts', context); throw error; }
  } });`;

/** Arguments for Node that make it run sources. */
export const sourceArguments: readonly string[] = ['--import', `data:text/javascript,${encodeURIComponent(RESOLVER)}`];

/** Its work is copying rows: a larger young generation would only be memory that is seldom given back. */
const resourceLimits = { maxYoungGenerationSizeMb: 16 };

/** @param name path without extension, relative to `base`, the caller's `import.meta.url` */
export function startWorker(name: string, base: string, workerData: unknown): Worker {
  if (base.endsWith('.js')) return new Worker(new URL(`${name}.js`, base), { workerData, resourceLimits });
  return new Worker(new URL(`${name}.ts`, base), { workerData, resourceLimits, execArgv: [...sourceArguments] });
}
