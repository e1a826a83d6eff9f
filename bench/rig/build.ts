import { mkdir, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { must, run } from './children.ts';
import { tools } from './peers.ts';

const native = join(import.meta.dirname, 'native');
const programs = {
  echo: ['echo.cc', 'common.cc'],
  load: ['load.cc', 'load_stream.cc', 'load_udp.cc', 'common.cc'],
};
/** GCC 12 warns of its own std::string (GCC bug 105651). */
const flags = ['-std=c++20', '-O2', '-Wall', '-Wextra', '-Werror', '-Wno-restrict', '-pthread'];
const goPrograms = ['go', '/usr/local/go/bin/go', '/usr/lib/go/bin/go'];

/** Compiles the load generator, the back end and, where there is Go, the Go proxy, into build/bench. */
export async function buildTools(note: (text: string) => void): Promise<void> {
  await mkdir(tools, { recursive: true });
  const changed = await newest(native);
  for (const [name, sources] of Object.entries(programs)) {
    const program = join(tools, name);
    if ((await changedAt(program)) > changed) continue;
    await must(['g++', ...flags, '-o', program, ...sources.map((source) => join(native, source))]);
  }
  const source = join(import.meta.dirname, 'go-proxy/main.go');
  for (const program of goPrograms) {
    const build = run([program, 'build', '-o', join(tools, 'go-proxy'), source]);
    if (await build.then(({ code }) => code === 0).catch(() => false)) return;
  }
  note('the Go proxy is left out: no Go that builds it');
}

/** When a file was written last, milliseconds; 0 when it is not there. */
async function changedAt(file: string): Promise<number> {
  return stat(file).then(
    ({ mtimeMs }) => mtimeMs,
    () => 0,
  );
}

async function newest(folder: string): Promise<number> {
  const files = await readdir(folder);
  return Math.max(...(await Promise.all(files.map((file) => changedAt(join(folder, file))))));
}
