import { readdir, readFile } from 'node:fs/promises';

/** Memory that a process holds, bytes: with the pages of its files, or only what it allocated. */
export async function residentBytes(pid: number, kind: 'VmRSS' | 'RssAnon' = 'VmRSS'): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(new RegExp(`^${kind}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]) * 1024;
}

export async function openDescriptors(pid: number): Promise<number> {
  return (await readdir(`/proc/${pid}/fd`)).length;
}
