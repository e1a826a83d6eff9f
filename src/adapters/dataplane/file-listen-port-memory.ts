import type { ListenerId } from '../../domain/dataplane/model.js';
import { portNumber } from '../../domain/kernel/network.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { ListenPortMemory } from '../../ports/dataplane/listen-port-memory.js';
import { replaceFile } from '../files/durable-file.js';
import { readTextFile } from '../files/text-file.js';

/** 30,000 listeners of 60 bytes, and room for long names. */
const MAX_BYTES = 16 * 1024 * 1024;

/** The chosen ports as one JSON object, `{"default/hello/http": 8080}`. */
export class FileListenPortMemory implements ListenPortMemory {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  async load(options: CallOptions): Promise<ReadonlyMap<ListenerId, number>> {
    const file = await readTextFile(this.#path, MAX_BYTES, options);
    return file.found === 'text' ? parse(file.text) : new Map();
  }

  async save(ports: ReadonlyMap<ListenerId, number>, options: CallOptions): Promise<void> {
    await replaceFile(this.#path, `${JSON.stringify(Object.fromEntries([...ports].sort()))}\n`, options);
  }
}

function parse(text: string): ReadonlyMap<ListenerId, number> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return new Map();
    const entries = Object.entries(value).filter(([, port]) => typeof port === 'number' && portNumber(port) !== undefined);
    return new Map(entries as [ListenerId, number][]);
  } catch {
    return new Map();
  }
}
